"""Run one prompt on a NovaCode that serves, and answer its questions here: remote_client.py ADDRESS PROMPT."""

import json
import sys

import trio
from trio_websocket import open_websocket_url


async def main(address: str, prompt: str) -> int:
    page, _, token = address.partition("#token=")
    url = page.replace("http", "ws", 1) + "ws"
    async with open_websocket_url(url, extra_headers=[("Authorization", f"Bearer {token}")]) as socket:

        async def say(**message: object) -> None:
            await socket.send_message(json.dumps(message))

        await say(type="hello", version=1, name="script")
        await say(type="prompt", text=prompt)
        asked = set()
        while True:
            message = json.loads(await socket.get_message())
            if message["type"] == "error":
                sys.exit(message["text"])
            for question in message["items"] if message["type"] == "approvals" else []:
                if question["id"] in asked or asked.add(question["id"]):
                    continue
                print(f"\n{question['summary']}: {question['reason']}. Allow? [y/N] ", end="", flush=True)
                yes = (await trio.to_thread.run_sync(sys.stdin.readline)).strip() == "y"
                answer = "allow" if yes else "deny"
                await say(type="permission_response", id=question["id"], runId=question["runId"], response=answer)
            for event in message.get("events") or ([message["event"]] if message["type"] == "event" else []):
                if event["type"] == "text_delta":
                    print(event["text"], end="", flush=True)
                elif event["type"] == "run_ended":
                    print(f"\n{event['status']}: {event['reason']}")
                    return 0 if event["status"] == "completed" else 1


sys.exit(trio.run(main, *sys.argv[1:]))
