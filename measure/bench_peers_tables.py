"""The tables of bench_peers.py: what it found, as Markdown."""

import statistics

OURS, THEIRS = "joulebook", "aiperf"


def table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    print()


def figure(value):
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def spread(values):
    return f"{100 * (max(values) - min(values)) / statistics.median(values):.1f} %"


def how_many(counts):
    """What was done, which an interruption makes less than what was asked for."""
    least, most = min(counts), max(counts)
    return f"medians of {least} to {most} runs each" if least < most else f"medians of {most} runs each"


def report_latency(server, found):
    for load in dict.fromkeys(at for at, _ in found):
        runs = [len(runs[tool]) for (at, _), runs in found.items() for tool in (OURS, THEIRS) if at == load]
        if not runs or not all(runs):
            print(f"{server}, {load}: no run of both tools\n")
            continue
        print(f"{server}, {load}: {how_many(runs)}, and their range over the median\n")
        rows = []
        for at, name in found:
            if at != load:
                continue
            ours, theirs = found[at, name][OURS], found[at, name][THEIRS]
            pairs = [mine / other for mine, other in zip(ours, theirs)]
            ratio = statistics.median(ours) / statistics.median(theirs)
            cells = [f for values in (ours, theirs) for f in (figure(statistics.median(values)), spread(values))]
            rows.append([name, *cells, f"{ratio:.3f}", f"{statistics.median(pairs):.3f}",
                         f"{min(pairs):.3f} to {max(pairs):.3f}"])
        table(["", "joulebook", "range", "aiperf", "range", "ratio", "ratio in pairs", "least and most"], rows)


def report_energy(options, found):
    for places in options.card_concurrency:
        counts = [len(runs) for (at, _), runs in found.items() if at == places]
        if not counts:
            print(f"The lab's card, {places} in flight: no run\n")
            continue
        print(f"The lab's card, {places} in flight: {how_many(counts)}\n")
        rows = []
        for at, reader in found:
            if at != places:
                continue
            runs = found[at, reader]

            def median(of):
                values = [value for value in map(of, runs) if value is not None]
                return statistics.median(values) if values else None

            def percent(of):
                values = [100 * value for value in map(of, runs)]
                return f"{statistics.median(values):+.2f} % ({min(values):+.2f} to {max(values):+.2f})"

            bound = median(lambda run: run.get("bound"))
            beside = ""
            if bound is not None:
                beside = f"bound {100 * bound / median(lambda run: run['joules']):.2f} %"
            if "wide" in runs[0]:
                early, late = median(lambda run: run["early"]), median(lambda run: run["late"])
                beside = (f"its readings stood {early:.2f} s before and {late:.2f} s after its window; "
                          f"off over that span {percent(lambda run: run['joules'] / run['wide'] - 1)}")
            rows.append([
                reader, f"{median(lambda run: run['seconds']):.1f}", figure(median(lambda run: run["joules"])),
                figure(median(lambda run: run["truth"])), percent(lambda run: run["joules"] / run["truth"] - 1),
                figure(median(lambda run: run["per_token"])), beside,
            ])  # fmt: skip
        table(["reader", "window, s", "joules", "truth", "off", "J/token", ""], rows)
