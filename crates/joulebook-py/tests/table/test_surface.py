"""The names and arguments of everything public."""

import inspect

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

# What giul 0.2.0 calls them, in its order; a star is where keywords begin.
CALLS = {
    "Meter": "backend idle_w=0.0 interval_s=0.25 joules_per_1k_hint=0.0 source='none' sync=None node=None",
    "Meter.for_node": "node tier=None interval_s=0.25 * joules_per_1k_hint=None sync=None timeout_s=2.0",
    "Meter.mark": "self name",
    "Meter.result": "self tokens=0",
    "Meter.sync": "self",
    "Energy": "joules method seconds samples=0 mean_watts=0.0 idle_watts=0.0 source='none' backend='none' stages "
              "contended=False contended_by=''",
    "Energy.per_token": "self tokens",
    "Energy.as_dict": "self tokens=0",
    "Node": "name='' gpu_index=0 idle_w=0.0 is_local=False power_endpoint=None serving_match=None "
            "contention_floor_mib=512 contention_ignore=()",
    "NvmlCounter": "gpu_index=0",
    "SmiSampler": "gpu_index=0",
    "RemoteAgent": "endpoint gpu_index=0 timeout_s=2.0",
    "read_power_w": "gpu_index=0",
    "read_compute_apps": "gpu_index=0",
    "read_gpu_state": "gpu_index=0",
    "counter_for": "gpu_index=0",
    "reset_probe_cache": "",
    "probe_node": "node timeout_s=3.0",
}


# None: False, or True where the new `gpus` names cards.
LEFT_OUT = {("joulebook", "is_local")}


def found(implementation, name):
    thing = implementation
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


@behaviour("the package's own signatures")
@pytest.mark.parametrize("name", CALLS)
def test_arguments(implementation, name):
    """Everything public takes giul's arguments by giul's names, in giul's order and with giul's defaults; more may
    follow by name."""
    parameters = list(inspect.signature(found(implementation, name)).parameters.values())
    after_star, expected = False, []
    for word in CALLS[name].split():
        if word == "*":
            after_star = True
            continue
        word, _, default = word.partition("=")
        expected.append((word, default, after_star))
    assert [parameter.name for parameter in parameters[:len(expected)]] == [word for word, _, _ in expected]
    for parameter, (word, default, after_star) in zip(parameters, expected):
        assert (parameter.kind is parameter.KEYWORD_ONLY) == after_star, word
        if default and (implementation.name, word) not in LEFT_OUT:
            assert repr(parameter.default) == default, word
    for parameter in parameters[len(expected):]:
        assert parameter.kind is parameter.VAR_KEYWORD or parameter.default is not parameter.empty, parameter


@behaviour("`Meter`")
@pytest.mark.parametrize("name", ["sampling", "backend_name", "watches_contention"])
def test_properties(implementation, name):
    """`sampling`, `backend_name` and `watches_contention` are properties, and cannot be set."""
    meter = implementation.Meter(None)
    getattr(meter, name)
    with pytest.raises(AttributeError):
        setattr(meter, name, "x")


@behaviour("`probe_node`")
def test_what_is_awaited(implementation):
    """`probe_node` is awaited; the four other probes are not."""
    coroutine = implementation.probe_node(None)
    assert inspect.isawaitable(coroutine)
    getattr(coroutine, "close", lambda: None)()
    for name in ("read_power_w", "read_compute_apps", "read_gpu_state", "counter_for"):
        assert not inspect.iscoroutinefunction(found(implementation, name))


@behaviour("`backends`")
def test_kinds_of_backends(implementation):
    """NvmlCounter, SmiSampler and RemoteAgent are Backends, named `nvml_counter`, `smi_sampler` and `remote_agent`; the
    first is of kind "counter", the others of kind "sampler"."""
    kinds = {"NvmlCounter": ("nvml_counter", "counter"), "SmiSampler": ("smi_sampler", "sampler"),
             "RemoteAgent": ("remote_agent", "sampler")}
    for name, (says, kind) in kinds.items():
        backend = found(implementation, name)
        assert issubclass(backend, implementation.Backend)
        assert (backend.name, backend.kind) == (says, kind)
