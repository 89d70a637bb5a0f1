"""What giul 0.2.0 does, as tests that run against giul and against joulebook.

Each test says one thing that giul's documentation or its own test suite says, in its docstring's
first line, and where (the mark `behaviour`). Where joulebook differs on purpose, the mark `differs`
says why, and the test holds each of the two to its own. `docs/giul.md` is made from this.

    pip install -r crates/joulebook-py/tests/table/requirements.txt
    cargo build -p joulebook-lab
    pytest crates/joulebook-py/tests/table                         # against both, a few minutes
    pytest crates/joulebook-py/tests/table -n 6 --dist loadgroup   # the same, most of it being sleep
    pytest crates/joulebook-py/tests/table --implementation giul   # against one
    pytest crates/joulebook-py/tests/table --write-page            # writes docs/giul.md

Nothing reads a real card: whatever asks for one runs in a child process whose driver library and
nvidia-smi are the lab's (see `lab`).
"""
