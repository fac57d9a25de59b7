"""An agent in Python whose requests pass through `plimsoll serve`. It needs Python's standard library alone.

Usage: agent.py URL    URL is a server with Anthropic's Messages API
"""

import json
import os
import shlex
import subprocess
import sys
import urllib.error
import urllib.request

TOOLS = [
    {
        "name": "read",
        "description": "Reads a file of the project.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
]


class Plimsoll:
    """Writes a line of JSON and reads the answer. One message at a time, so no ids are needed."""

    def __init__(self, *options):
        command = shlex.split(os.environ.get("PLIMSOLL", "plimsoll")) + ["serve", "--no-store", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def send(url, request):
    """Returns the status and the body of the provider's answer."""
    headers = {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "x-api-key": os.environ.get("ANTHROPIC_API_KEY", "none"),
    }
    post = urllib.request.Request(url + "/v1/messages", json.dumps(request).encode(), headers)
    try:
        with urllib.request.urlopen(post) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def call_model(url, plimsoll, request):
    """Has the request fitted, sends it, and reports what became of it. Returns the answer and the call's event."""
    fitted = plimsoll.ask(request=request)
    trims = int(fitted["trimmed"])
    while True:
        status, body = send(url, fitted["request"])
        if status == 200:
            ended = plimsoll.ask(call=fitted["call"], usage=body["usage"])
            return body, ended["event"], trims
        # The provider may count more tokens than Plimsoll. Then there is a smaller request.
        fitted = plimsoll.ask(call=fitted["call"], refusal={"status": status, "body": body})
        if fitted["request"] is None:
            raise RuntimeError(json.dumps(body))
        trims += int(fitted["trimmed"])


def read_file(path):
    return "// " + path + "\n" + "export const answer = 42;\n" * 120


def main(url):
    plimsoll = Plimsoll("--window", "20000", "--reserve", "2000")
    messages = [{"role": "user", "content": "Where is the bug?"}]
    calls = trims = 0
    paid = 0.0
    while True:
        request = {"model": "claude-sonnet-5", "max_tokens": 1000, "tools": TOOLS, "messages": messages}
        answer, event, trimmed = call_model(url, plimsoll, request)
        calls += 1
        trims += trimmed
        paid += event["usd"] or 0  # None for a model without a known price
        messages.append({"role": "assistant", "content": answer["content"]})
        asked = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not asked:
            break
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": read_file(block["input"]["path"])}
            for block in asked
        ]
        messages.append({"role": "user", "content": results})
    plimsoll.close()
    text = "".join(block["text"] for block in answer["content"] if block["type"] == "text")
    print(f"{calls} calls, {trims} trims, ${paid:.2f}. {text}")


if __name__ == "__main__":
    main(sys.argv[1])
