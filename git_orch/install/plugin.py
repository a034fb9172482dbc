"""opencode's hooks: a plugin of ours, which starts the launcher and does what it answers. A file of ours alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from git_orch.install import edit, launcher

if TYPE_CHECKING:
    from git_orch.install.clients import Client

_HEAD = b"// git-orch's plugin for opencode."
_TEXT = """\
// git-orch's plugin for opencode. `git orch install opencode` writes it anew, `git orch uninstall opencode` removes it.
// It does nothing where git-orch is not installed, or where `orch.enabled` is not set.
import { spawn } from "node:child_process"

const LINES = %s
const TIMEOUT_MS = %d

function ask(event, name, id, directory) {
  return new Promise((resolve) => {
    let said = ""
    const done = () => {
      try { resolve(JSON.parse(said)) } catch { resolve({}) }
    }
    try {
      const options = { cwd: directory, stdio: ["pipe", "pipe", "ignore"], timeout: TIMEOUT_MS }
      const child = spawn("sh", ["-c", LINES[event]], options)
      child.on("error", () => resolve({}))
      child.stdin.on("error", () => {})
      child.stdout.on("data", (part) => { said += part })
      child.on("close", done)
      child.stdin.end(JSON.stringify({ session_id: id, cwd: directory, hook_event_name: name }))
    } catch {
      resolve({})
    }
  })
}

export const GitOrch = async ({ client, directory }) => {
  const below = new Map()
  const waiting = new Map()
  const isBelow = async (id) => {
    if (!below.has(id)) {
      const found = await client.session.get({ path: { id } }).catch(() => undefined)
      below.set(id, Boolean(found?.data?.parentID))
    }
    return below.get(id)
  }
  const show = async (message) => {
    if (message) await client.tui.showToast({ body: { message, variant: "info" } }).catch(() => undefined)
  }
  const onEvent = {
    "session.created": async ({ info }) => {
      below.set(info.id, Boolean(info.parentID))
      if (info.parentID) return
      const started = ask("session-start", "session.created", info.id, directory)
      waiting.set(info.id, started)
      await show((await started).message)
    },
    "session.idle": async ({ sessionID }) => {
      if (await isBelow(sessionID)) return
      const said = await ask("stop", "session.idle", sessionID, directory)
      await show(said.message)
      if (!said.prompt) return
      const body = { parts: [{ type: "text", text: said.prompt }] }
      await client.session.prompt({ path: { id: sessionID }, body }).catch(() => undefined)
    },
  }
  return {
    event: async ({ event }) => {
      await onEvent[event.type]?.(event.properties)
    },
    "chat.message": async ({ sessionID }, output) => {
      if (await isBelow(sessionID)) return
      const first = (await waiting.get(sessionID)) ?? {}
      waiting.delete(sessionID)
      const said = await ask("user-prompt-submit", "chat.message", sessionID, directory)
      await show(said.message)
      for (const text of [first.context, said.context]) {
        if (!text) continue
        const id = "prt_orch" + Date.now().toString(36) + Math.random().toString(36).slice(2)
        output.parts.push({ id, sessionID, messageID: output.message.id, type: "text", text, synthetic: true })
      }
    },
  }
}
"""


def put_in(raw: bytes, client: Client) -> bytes:
    """The plugin, in the place of an older one of ours or of nothing.

    Raises:
        NotJson: the file is somebody else's.
    """
    if raw.strip() and not is_ours(raw):
        raise edit.NotJson("it is not git-orch's")
    lines = json.dumps({event: client.line(event) for event in launcher.EVENTS}, indent=2)
    return (_TEXT % (lines, 20_000)).encode()


def is_ours(raw: bytes) -> bool:
    """Whether the plugin is one of ours, whatever its version."""
    return raw.startswith(_HEAD) and launcher.MARK.encode() in raw
