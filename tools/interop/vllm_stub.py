"""Lets the benchmark modules of vLLM's wheel be imported where the rest of vLLM, which needs a GPU build, is not there:
install(FOLDER) puts empty stand-ins in its place. FOLDER holds vllm/benchmarks of the wheel."""
import importlib.abc
import importlib.machinery
import sys
import types

ABSENT = ("datasets", "PIL", "torch", "cv2", "librosa", "soundfile", "pybase64", "av")


class Anything:
    def __init__(self, *a, **k):
        pass

    def __call__(self, *a, **k):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __class_getitem__(cls, item):
        return cls


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last, so that what is installed is used; members gives modules that must do something their contents."""

    def __init__(self, folder, members):
        self.folder, self.members = folder, members

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ("vllm",) + ABSENT:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        m = Stub(spec.name)
        m.__path__ = [self.folder + "/" + spec.name.replace(".", "/")] if spec.name.startswith("vllm") else []
        m.__dict__.update(self.members.get(spec.name, {}))
        return m

    def exec_module(self, module):
        pass


def install(folder, members=None):
    sys.path.insert(0, folder)
    sys.meta_path.append(Finder(folder, members or {}))
