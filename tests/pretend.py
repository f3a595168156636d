"""A pretend accelerator for machines without one: the device ``pretend``, with values in CPU memory and no mixing of devices.

Every operation arrives in one Python fallback, which refuses tensors of the CPU among those of the device as CUDA would, notes
what would make the host wait, and calculates on the CPU. It stays for the life of the process: import it in one of its own.
"""

from __future__ import annotations

import collections
import traceback

import torch
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend


class Module(_DummyBackendModule):
    """``torch.pretend``."""

    def device_count(self):
        return 1

    def current_device(self):
        return 0

    def set_device(self, index):
        pass

    def is_available(self):
        return True

    def get_amp_supported_dtype(self):
        return [torch.float16, torch.bfloat16]

    def is_bf16_supported(self):
        return True

    def get_rng_state(self, device=None):
        return torch.empty(0, dtype=torch.uint8)

    def set_rng_state(self, state, device=None):
        pass

    def manual_seed_all(self, seed):
        pass

    def _is_in_bad_fork(self):
        return False


_setup_privateuseone_for_python_backend("pretend", backend_module=Module())
NAME, CPU = "pretend", torch.device("cpu")
# Operations whose result has a size, or a value on the host, that the device must tell.
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "bincount", "equal", "is_nonzero"}
COPIES = {"_copy_from", "_copy_from_and_resize", "copy_", "_to_copy"}
MIXED = COPIES | {"index", "index_put_", "_index_put_impl_", "set_"}  # take tensors of the CPU too
float64 = True  # whether the device has it
waits = collections.Counter()  # (operation, file and line) that would make the host wait
values = {}  # storage of the device -> (itself, to keep it alive; values): views of a tensor share their storage


def on_device(raw):
    """A tensor of the device with these values."""
    tensor = torch._C._acc.create_empty_tensor(tuple(raw.shape), raw.dtype)
    storage = tensor.untyped_storage()
    values[storage._cdata] = (storage, raw)
    return tensor


def raw_of(tensor):
    """The values of a tensor of the device."""
    raw = values[tensor.untyped_storage()._cdata][1]
    if tuple(tensor.shape) == tuple(raw.shape):
        return raw
    offset = raw.storage_offset() + tensor.storage_offset()
    return raw.contiguous().as_strided(tensor.shape, tensor.stride(), offset)  # a view made in C++


def where():
    """The line of the library that is running."""
    for frame in reversed(traceback.extract_stack()):
        if "/eulerscan/" in frame.filename and "pretend.py" not in frame.filename:
            return f"{frame.filename.split('/eulerscan/')[-1]}:{frame.lineno}"
    return "?"


def is_on_device(value):
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def fallback(op, *args, **kwargs):
    name = op._schema.name.split("::")[1]
    own, of_cpu, of_device, masks = {}, [], [], []

    def unwrap(value):
        if is_on_device(value):
            raw = raw_of(value)
            own.setdefault(id(raw), (raw, value))
            of_device.append(value)
            if raw.dtype == torch.bool:
                masks.append(value)
            return raw
        if isinstance(value, torch.Tensor):
            if value.ndim:
                of_cpu.append(value)
            return value
        if isinstance(value, torch.device):
            return CPU if value.type == NAME else value
        if isinstance(value, (list, tuple)):
            return type(value)(unwrap(entry) for entry in value) if not hasattr(value, "_fields") else value
        return value

    args, kwargs = [unwrap(a) for a in args], {key: unwrap(a) for key, a in kwargs.items()}
    if of_device and not float64 and any(raw.dtype == torch.float64 for raw, _ in own.values()):
        raise TypeError(f"{name}: {NAME} has no float64, at {where()}")
    by_mask = name in ("index", "index_put_", "_index_put_impl_") and masks
    between = name in COPIES and of_cpu and of_device  # from or to the CPU
    if name in WAITING or by_mask or between:
        waits[name, where()] += 1
    if of_cpu and of_device and name not in MIXED:
        raise RuntimeError(f"{name}: tensors on cpu and {NAME}, at {where()}")
    # A handle says that it is contiguous, whatever the values are.
    if name in ("as_strided", "as_strided_", "_reshape_alias") and not args[0].is_contiguous():
        args[0] = args[0].contiguous()
    if name == "as_strided":  # its offset is one into the storage
        offset = (args[3] if len(args) > 3 else kwargs.pop("storage_offset", None)) or 0
        args = [*args[:3], offset + args[0].storage_offset()]
    if name in ("view", "_unsafe_view") and not args[0].is_contiguous():
        out = args[0].reshape(args[1])
    elif name == "_copy_from":
        out = args[1].copy_(args[0])
    else:
        try:
            out = op(*args, **kwargs)
        except RuntimeError as error:
            raise RuntimeError(f"{error} [in {name}]") from None
    for raw, tensor in own.values():  # an operation may have resized what it was given for its result
        if tuple(tensor.shape) != tuple(raw.shape):
            tensor.data = on_device(raw)
    return out if name == "_local_scalar_dense" else _wrapped(out, own)


def _wrapped(value, own):
    if isinstance(value, torch.Tensor):
        return own[id(value)][1] if id(value) in own else on_device(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_wrapped(entry, own) for entry in value)
    return value


library = torch.library.Library("_", "IMPL")
library.fallback(fallback, "PrivateUse1")
library.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")  # as if every operation kept its dtype


def convolution(input, weight, bias, *options):
    return on_device(torch.convolution(raw_of(input), raw_of(weight), None if bias is None else raw_of(bias), *options))


def convolution_backward(gradient, input, weight, *options):
    raws = [raw_of(tensor) for tensor in (gradient, input, weight)]
    *options, mask = options
    found = torch.ops.aten.convolution_backward(*raws, [len(raws[2])], *options, mask)
    return tuple(None if g is None else on_device(g) for g in found)


aten = torch.library.Library("aten", "IMPL")
aten.impl("convolution_overrideable", convolution, "PrivateUse1")
aten.impl("convolution_backward_overrideable", convolution_backward, "PrivateUse1")


def interpret_triton():
    """Let Triton's interpreter take tensors of the device."""
    from interpreter import WIDE, interpreter, problem

    problem.TILES = WIDE
    execute = interpreter.GridExecutor.__call__

    def call(self, *args, **kwargs):
        copies = []

        def unwrap(value):
            if not is_on_device(value):
                return value
            raw = raw_of(value)
            copies.append((raw, raw.contiguous()))
            return copies[-1][1]

        args, kwargs = [unwrap(a) for a in args], {name: unwrap(a) for name, a in kwargs.items()}
        execute(self, *args, **kwargs)
        for raw, copy in copies:
            if raw.data_ptr() != copy.data_ptr():
                raw.copy_(copy)

    interpreter.GridExecutor.__call__ = call
