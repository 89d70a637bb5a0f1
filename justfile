# The short front door; cargo alone does all of it.

# what there is
default:
    @just --list

# the main job on a card whose truth is known
demo *arguments:
    cargo run --release -- demo {{arguments}}

# all that CI runs (--quick: without loom, fuzz and Python)
test *arguments:
    ./test {{arguments}}

# format and lints, as CI sees them
lint:
    ./test format clippy

# every interleaving of the ring
loom:
    ./test loom

# the API's pages
docs:
    cargo doc --workspace --no-deps --open

# microbenchmarks
bench *arguments:
    cargo bench --workspace {{arguments}}

# a long measurement by hand: just measure NAME (without a name: which there are)
measure name="" *arguments:
    @if [ -z "{{name}}" ]; then ls measure; else measure/{{name}} {{arguments}}; fi

# the suite for a real card, under five minutes, on a host that has one
gpu:
    cargo test --release -p joulebook --test gpu -- --ignored
