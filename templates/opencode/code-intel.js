// code-intel: asks `code-intel-server hook` before a tool of OpenCode writes, and tells it of prompts. Written by `code-intel-server init`.
import { spawnSync } from "node:child_process"

export const CodeIntel = async ({ directory }) => ({
  "chat.message": async ({ sessionID }, { parts }) => {
    const prompt = parts.map((part) => part.text ?? "").join("\n")
    const input = JSON.stringify({ hook_event_name: "UserPromptSubmit", prompt, cwd: directory, session_id: sessionID })
    spawnSync("code-intel-server", ["hook", "--client", "opencode"], { input, timeout: 10000 })
  },
  "tool.execute.before": async ({ tool, sessionID }, { args }) => {
    if (!/^(write|edit|multiedit|patch|apply_patch)$|start_session$/.test(tool)) return
    const event = { hook_event_name: "PreToolUse", tool_name: tool, tool_input: args, cwd: directory, session_id: sessionID }
    const input = JSON.stringify(event)
    const asked = spawnSync("code-intel-server", ["hook", "--client", "opencode"], { input, encoding: "utf8", timeout: 10000 })
    if (asked.status === 2) throw new Error(asked.stderr.trim())
  },
})
