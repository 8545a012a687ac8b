"""Python imports this at its start, since the launcher puts this folder first in PYTHONPATH. It waits
for the program to import torch, then starts the observer. The user's own sitecustomize runs as before. Stand-ins of packages
(stand_in_modules) come last in the path, so that a package which is installed is imported itself."""

import importlib.util
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _package():
    """hpo_dryrun, wherever the launcher is installed: the program may run in another environment."""
    name = "hpo_dryrun"
    if name not in sys.modules:
        root = os.path.dirname(_FOLDER)
        spec = importlib.util.spec_from_file_location(name, os.path.join(root, "__init__.py"),
                                                      submodule_search_locations=[root])
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return importlib.import_module(name + ".observer")


class _TorchFinder:
    """Finds torch through the other finders, and starts the observer when it has been imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in sys.meta_path:
            other = finder is not self and hasattr(finder, "find_spec")
            spec = finder.find_spec(name, path, target) if other else None
            if spec is not None:
                break
        else:
            return None
        if spec.origin is None or not hasattr(spec.loader, "exec_module"):
            return spec
        execute = spec.loader.exec_module

        def execute_and_observe(module):
            # Not before: a program may only ask whether torch is there (importlib.util.find_spec).
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            observer = _package()
            observer.before_torch(os.path.dirname(spec.origin))
            execute(module)
            observer.install(module)

        spec.loader.exec_module = execute_and_observe
        return spec


def _run_the_users_own():
    """The sitecustomize that Python would have found without ours."""
    ours = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != _FOLDER]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


if os.environ.get("HPO_DRY_RUN_RECORD"):
    sys.meta_path.insert(0, _TorchFinder())
_run_the_users_own()
sys.path += [folder for folder in os.environ.get("HPO_DRY_RUN_MODULES", "").split(os.pathsep) if folder]
