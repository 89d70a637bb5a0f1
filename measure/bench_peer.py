"""joulebook bench beside aiperf on one real llama.cpp server, in turn, in one run. See measure/bench."""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

WORDS = """the of and energy joule watt token hello world apple river stone time house light water paper
green table music north small early right""".split()


def ask(url, body=None):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def prompt(draw, rounds):
    """Each word once a round, in any order: the same count of tokens in each prompt."""
    return " ".join(word for _ in range(rounds) for word in draw.sample(WORDS, len(WORDS)))


def ours(arguments, url, folder, tokens):
    command = [str(arguments.program), "bench", "--url", url, "--concurrency", str(arguments.concurrency)]
    command += ["--requests", str(arguments.requests), "--warm-up", "0", "--cool-down", "0", "--baseline", "500ms"]
    command += ["--prompt-tokens", str(tokens), "--answer-tokens", str(arguments.answer), "-o", str(folder)]
    command += ["--seed", str(random.randrange(1 << 30)), *arguments.more]
    subprocess.run(command, check=True, stdout=sys.stderr)
    record = json.loads((folder / "record.json").read_text())
    lines = [json.loads(text) for text in (folder / "requests.jsonl").read_text().splitlines()]
    figure = lambda name: record[f"c{arguments.concurrency}_{name}"]
    itl = sorted(((line["content_ns"][-1] - line["content_ns"][0]) / (line["completion_tokens"] - 1)) / 1e6 for line in lines)
    return {
        "TTFT mean, ms": figure("mean_ttft_ms"), "TTFT median, ms": figure("median_ttft_ms"),
        "ITL mean, ms": statistics.mean(itl), "ITL median, ms": statistics.median(itl),
        "latency mean, ms": figure("mean_e2el_ms"), "tokens/s": figure("output_throughput"),
        "requests/s": figure("request_throughput"),
        "prompt tokens": statistics.mean(line["prompt_tokens"] for line in lines),
        "answer tokens": statistics.mean(line["completion_tokens"] for line in lines),
    }, record


def aiperf(arguments, url, folder, more=()):
    draw = random.Random(random.randrange(1 << 30))
    texts = folder / "prompts.jsonl"
    folder.mkdir()
    texts.write_text("".join(json.dumps({"text": prompt(draw, arguments.rounds)}) + "\n" for _ in range(arguments.requests)))
    command = [str(Path(sys.executable).parent / "aiperf"), "profile", "-m", arguments.model, "--url", url.removesuffix("/v1")]
    command += ["--endpoint-type", "chat", "--streaming", "--concurrency", str(arguments.concurrency)]
    command += ["--request-count", str(arguments.requests), "--input-file", str(texts), "--custom-dataset-type", "single_turn"]
    command += ["--extra-inputs", "ignore_eos:true", "--extra-inputs", "temperature:0", "--extra-inputs", f"max_tokens:{arguments.answer}"]
    command += ["--tokenizer", "builtin", "--use-server-token-count", "--artifact-dir", str(folder), "--ui", "none", *more]
    environment = dict(os.environ, HF_HUB_OFFLINE="1", AIPERF_LOG_LEVEL="WARNING")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = list(folder.rglob("profile_export_aiperf.json"))
    if not found:
        sys.exit("aiperf left no result:\n" + done.stdout[-3000:] + done.stderr[-3000:])
    result = json.loads(found[0].read_text())
    of = lambda name, kind="avg": result[name][kind]
    return {
        "TTFT mean, ms": of("time_to_first_token"), "TTFT median, ms": of("time_to_first_token", "p50"),
        "ITL mean, ms": of("inter_token_latency"), "ITL median, ms": of("inter_token_latency", "p50"),
        "latency mean, ms": of("request_latency"), "tokens/s": of("output_token_throughput"),
        "requests/s": of("request_throughput"), "prompt tokens": of("input_sequence_length"),
        "answer tokens": of("output_sequence_length"),
    }, result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=Path("target"))
    parser.add_argument("--gguf", type=Path, help="a model; without it a random one is made")
    parser.add_argument("--maker", type=Path, default=Path("../shared/tools/mkgguf.py"))
    parser.add_argument("--size", default="512 8 1408 8 2 16384", help="of the random model: dim layers ff heads kv ctx")
    parser.add_argument("--times", type=int, default=5, help="each tool, in turn")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--answer", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2, help="rounds of words in a prompt")
    arguments = parser.parse_args()
    arguments.program = (arguments.target / "release" / "joulebook").resolve()
    arguments.model, arguments.more = "m", []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        model = arguments.gguf
        if model is None:
            model = folder / "m.gguf"
            subprocess.run([sys.executable, str(arguments.maker), str(model), *arguments.size.split()], check=True, stdout=sys.stderr)
        port = random.randrange(20000, 30000)
        server = [str(Path(sys.executable).parent / "llama-server-vulkan"), "-m", str(model), "--host", "127.0.0.1", "--port", str(port)]
        server += ["--alias", "m", "-np", str(arguments.concurrency), "-c", str(4096 * arguments.concurrency), "-t", "1", "--no-webui"]
        log = (folder / "server.log").open("w")
        process = subprocess.Popen(server, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}/v1"
            for _ in range(300):
                try:
                    ask(f"{url}/models")
                    break
                except OSError:
                    time.sleep(0.2)
            body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": prompt(random.Random(1), arguments.rounds)}]}
            tokens = ask(f"{url}/chat/completions", body)["usage"]["prompt_tokens"]
            runs = {"joulebook bench": [], "aiperf": []}
            for turn in range(arguments.times):
                runs["joulebook bench"].append(ours(arguments, url, folder / f"ours-{turn}", tokens)[0])
                runs["aiperf"].append(aiperf(arguments, url, folder / f"aiperf-{turn}")[0])
        finally:
            process.kill()
            process.wait()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    print(f"Commit {commit}; llama.cpp, a random model of {arguments.size}; {arguments.concurrency} in flight, {arguments.requests} requests, "
          f"{arguments.times} times each in turn; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.\n")
    print("| | joulebook bench | aiperf 0.13.0 | difference of the medians | spread of ours | of aiperf's |\n| --- | --- | --- | --- | --- | --- |")
    for name in runs["aiperf"][0]:
        left, right = ([run[name] for run in runs[tool]] for tool in runs)
        spread = lambda values: f"{min(values):.4g} to {max(values):.4g}"
        middle = statistics.median(left), statistics.median(right)
        print(f"| {name} | {middle[0]:.4g} | {middle[1]:.4g} | {(middle[0] / middle[1] - 1) * 100:+.1f} % | {spread(left)} | {spread(right)} |")


main()
