"""What made a Python process load the instruments, taken back before it loads anything of the project.

Copied next to a checkout with them, it imports nothing of ours. What is tested finds the environment, the search path and
the modules that it finds without them.
"""

import os
import sys

_HERE = os.path.dirname(__file__)  # noqa: PTH120 - text as it is among the variables
_LOADED_BY = {
    "PYTEST_ADDOPTS": " -p pytest_results",
    "NODE_OPTIONS": f'--require "{_HERE}/node_results.cjs"',
    "npm_config_node_options": f'--require "{_HERE}/node_results.cjs"',
}


def _set(name: str, value: str) -> None:
    if value:
        os.environ[name] = value
    else:
        os.environ.pop(name, None)


def restore_environment() -> None:
    """Take our folders and options out of the variables: what tests start reports nothing either."""
    for name in ("PATH", "PYTHONPATH"):
        kept = (one for one in os.environ.get(name, "").split(os.pathsep) if not one.startswith(_HERE))
        _set(name, os.pathsep.join(kept))
    for name, option in _LOADED_BY.items():
        _set(name, os.environ.get(name, "").replace(option, "").strip())


def restore_modules() -> None:
    """Take our folder from the search path and our files from the loaded modules."""
    sys.path[:] = [one for one in sys.path if not one.startswith(_HERE)]
    for name, module in [*sys.modules.items()]:
        if name != "__main__" and str(getattr(module, "__file__", None) or "").startswith(_HERE):
            del sys.modules[name]
