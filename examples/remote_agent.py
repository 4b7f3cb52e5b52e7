"""An agent in a process of its own, in nothing but Python: docs/remote-agents.md is all it was written from.

It reads the files that a message names, and tells what became of each. The environment is that of remote-agent.mjs.
"""

import base64
import json
import os
import re
import socket
import sys
from urllib.parse import urlparse


def encoded(name):
    plain = re.fullmatch(r"[A-Za-z0-9_-]{1,128}", name)
    return name if plain else "~" + base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def decide(step):
    """One decision, and what to remember of the turn."""
    told = step.get("memory", {}).get("told", [])
    if step["input"]["type"] == "tool_result":
        result = step["input"]["result"]
        told = [*told, result["output"]["content"] if result["status"] == "succeeded" else result["error"]["code"]]
    paths = step["turn"]["message"]["payload"]["paths"]
    if len(told) == len(paths):
        return {"type": "complete", "output": {"told": told}}, {"told": told}
    call = {"id": f"call-{step['step'] + 1}", "tool": "files.read", "arguments": {"path": paths[len(told)]}}
    return {"type": "tool_call", "call": call}, {"told": told}


env = os.environ
subject = f"sharedos.v1.{encoded(env['SHAREDOS_NAMESPACE'])}.runtime.step.agent.{encoded(env['SHAREDOS_AGENT'])}"
server = urlparse(env["SHAREDOS_NATS_URL"])
broker = socket.create_connection((server.hostname, server.port or 4222))
heard = broker.makefile("rb")
heard.readline()  # INFO
connect = {"user": env["SHAREDOS_NATS_USER"], "pass": env["SHAREDOS_NATS_PASSWORD"], "headers": True, "verbose": False, "pedantic": False}
broker.sendall(f"CONNECT {json.dumps(connect)}\r\nSUB {subject} answers 1\r\nPING\r\n".encode())

while line := heard.readline():
    word, *fields = line.decode().split()
    if word == "PING":
        broker.sendall(b"PONG\r\n")
    elif word == "PONG":
        print("deciding", flush=True)
    elif word == "-ERR":
        sys.exit(line.decode())
    elif word == "HMSG":  # subject, subscription, where to answer, bytes of headers, bytes in all
        message = heard.read(int(fields[-1]) + 2)
        headers, body = message[: int(fields[-2])].decode(), message[int(fields[-2]) : -2]
        if len(fields) < 5 or "sharedos-schema: runtime.step/1\r\n" not in headers:
            continue
        step = json.loads(body)
        decision, memory = decide(step)
        value = {"token": step["token"], "step": step["step"], "decision": decision, "memory": memory}
        answer = json.dumps({"ok": True, "value": value}).encode()
        named = b"NATS/1.0\r\nsharedos-schema: runtime.step.reply/1\r\n\r\n"
        broker.sendall(f"HPUB {fields[2]} {len(named)} {len(named) + len(answer)}\r\n".encode() + named + answer + b"\r\n")
    elif word == "MSG":
        heard.read(int(fields[-1]) + 2)
