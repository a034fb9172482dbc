"""The real clients: where they are, how each is pointed at the provider, and what else it needs to start at all.

Looked for in `$AGENT_CLIS/*/node_modules/.bin` (as scripts/clients puts them there), then on PATH. A test that needs
one that is not there is skipped, and says which.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

Files = dict[str, str]
_OUTSIDE = dict(os.environ)  # a test's own environment is sealed
REVIEWERS = ("claude", "codex", "gemini", "copilot", "opencode", "qwen")


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A client's program in one version's folder; `label` tells versions apart."""

    name: str
    label: str
    program: Path


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a client finds: variables, and files below HOME."""

    env: dict[str, str]
    files: Files


def installed(name: str) -> list[Installed]:
    """Every version of the client that there is."""
    root = _OUTSIDE.get("AGENT_CLIS", "")
    found = sorted(Path(root).glob(f"*/node_modules/.bin/{name}")) if root else []
    if found:
        return [Installed(name=name, label=path.parents[2].name, program=path) for path in found]
    on_path = shutil.which(name, path=_OUTSIDE.get("PATH"))
    return [Installed(name=name, label=name, program=Path(on_path))] if on_path else []


def setting(name: str, url: str, home: Path) -> Setting:
    """How the client is pointed at the provider, and kept from everything else."""
    match name:
        case "claude":
            return Setting(
                env={
                    "ANTHROPIC_BASE_URL": url,
                    "ANTHROPIC_API_KEY": "dummy",
                    "CLAUDE_CONFIG_DIR": str(home / ".claude"),
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "CLAUDE_CODE_MAX_RETRIES": "1",
                    "DISABLE_TELEMETRY": "1",
                    "DISABLE_ERROR_REPORTING": "1",
                    "DISABLE_AUTOUPDATER": "1",
                },
                files={},
            )
        case "codex":
            config = (
                'model = "fake-model"\nmodel_provider = "fake"\n[model_providers.fake]\nname = "fake"\n'
                f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
                "request_max_retries = 1\nstream_max_retries = 1\n"
            )
            return Setting(env={"FAKE_KEY": "dummy"}, files={".codex/config.toml": config})
        case "gemini":
            settings = {
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
                "general": {"enableAutoUpdate": False},
            }
            env = {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_MODEL": "gemini-2.5-pro"}
            return Setting(env=env, files={".gemini/settings.json": json.dumps(settings)})
        case "qwen":
            settings = {
                "security": {"auth": {"selectedType": "openai"}},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
                "general": {"enableAutoUpdate": False},
                "model": {"name": "fake-model"},
            }
            env = {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "fake-model"}
            return Setting(env=env, files={".qwen/settings.json": json.dumps(settings)})
        case "copilot":
            env = {
                "COPILOT_HOME": str(home / ".copilot"),
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": url,
                "COPILOT_PROVIDER_TYPE": "anthropic",
                "COPILOT_PROVIDER_API_KEY": "dummy",
                "COPILOT_MODEL": "claude-sonnet-4",
            }
            return Setting(env=env, files={})
        case "opencode":
            options = {"options": {"baseURL": f"{url}/v1", "apiKey": "dummy"}}
            settings = {
                "autoupdate": False,
                "share": "disabled",
                "provider": {"anthropic": options},
                "model": "anthropic/claude-sonnet-4-5",
                "small_model": "anthropic/claude-haiku-4-5",
            }
            env = {"OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
            return Setting(env=env, files={".config/opencode/opencode.json": json.dumps(settings)})
    raise KeyError(name)
