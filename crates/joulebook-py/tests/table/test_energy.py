"""What an Energy is and how it is written down."""

import copy
import dataclasses
import json
import math
import pickle
import random

import pytest

behaviour, differs = pytest.mark.behaviour, pytest.mark.differs

SHAPE = {"joules", "method", "seconds", "samples", "mean_watts", "idle_watts", "source", "backend"}


def window(implementation, **changes):
    """Two seconds at 300 W above an idle floor of 25 W."""
    fields = {"joules": 550.0, "method": "sampled", "seconds": 2.0, "mean_watts": 300.0, "idle_watts": 25.0}
    return implementation.Energy(**{**fields, **changes})


@behaviour("test_meter")
def test_a_token_costs_its_share(implementation):
    """`per_token(tokens)` is joules divided by tokens."""
    assert window(implementation).per_token(550) == 1.0
    assert window(implementation, joules=1.0).per_token(3) == 1.0 / 3.0


@behaviour("`Energy.per_token`")
@pytest.mark.parametrize("tokens", [0, -1, -1000])
def test_without_tokens_there_is_no_cost_of_a_token(implementation, tokens):
    """`per_token` is None for 0 tokens or fewer, and no error."""
    assert window(implementation).per_token(tokens) is None


@behaviour("test_meter")
def test_the_shape_without_tokens(implementation):
    """`as_dict()` has exactly eight keys: joules, method, seconds, samples, mean_watts, idle_watts, source, backend."""
    assert set(window(implementation).as_dict()) == SHAPE
    assert set(window(implementation).as_dict(0)) == SHAPE


@behaviour("test_meter")
def test_the_shape_with_tokens(implementation):
    """With tokens `as_dict(tokens)` has joules_per_token and tokens_per_joule as well."""
    shape = window(implementation).as_dict(550)
    assert set(shape) == SHAPE | {"joules_per_token", "tokens_per_joule"}
    assert shape["joules_per_token"] == 1.0 and shape["tokens_per_joule"] == 1.0
    assert set(window(implementation).as_dict(tokens=550)) == set(shape)


@behaviour("`Energy.as_dict`")
def test_the_order_of_the_keys(implementation):
    """Keys come in a fixed order, ratios after the eight, then stages, then contention."""
    stage = window(implementation)
    energy = window(implementation, stages={"a": stage}, contended=True, contended_by="x (1 MiB)")
    assert list(energy.as_dict(2)) == ["joules", "method", "seconds", "samples", "mean_watts", "idle_watts", "source",
                                       "backend", "joules_per_token", "tokens_per_joule", "stages", "contended",
                                       "contended_by"]


def printed(value, decimals, ours):
    """A sampled figure in print."""
    if ours and value != 0:
        decimals = max(decimals, 2 - math.floor(math.log10(abs(value))))
    return round(value, decimals)


@behaviour("`Energy.as_dict`")
@differs("A `sampled` figure keeps three significant digits, so that a small one does not print as 0 (rule 2 in print as "
         "well as in fact). What has three digits anyway, and what is not sampled, is rounded as giul does.")
@pytest.mark.parametrize("largest", [5000.0, 1.0, 0.001])
def test_rounding(implementation, ours, largest):
    """Joules are rounded to 3 decimals, seconds to 4, watts to 2, joules_per_token to 5, tokens_per_joule to 3,
    each from the unrounded value."""
    chance = random.Random(7)
    for method in ("sampled", "estimated"):
        for _ in range(300):
            joules, seconds = chance.uniform(largest / 100, largest), chance.uniform(0, 100)
            mean_watts, idle_watts, tokens = chance.uniform(0, 900), chance.uniform(0, 90), chance.randint(1, 5000)
            energy = implementation.Energy(joules=joules, method=method, seconds=seconds, samples=3,
                                           mean_watts=mean_watts, idle_watts=idle_watts, source="local")
            keeps = ours and method == "sampled"
            assert energy.as_dict(tokens) == {
                "joules": printed(joules, 3, keeps), "method": method, "seconds": round(seconds, 4), "samples": 3,
                "mean_watts": round(mean_watts, 2), "idle_watts": round(idle_watts, 2), "source": "local",
                "backend": "none", "joules_per_token": printed(joules / tokens, 5, keeps),
                "tokens_per_joule": printed(1.0 / (joules / tokens), 3, keeps),
            }


@behaviour("`Energy.as_dict`")
def test_nothing_was_measured_in_print(implementation):
    """An unknown window prints 0.0 joules, and with tokens 0.0 joules_per_token and a null tokens_per_joule."""
    energy = implementation.Energy(joules=0.0, method="unknown", seconds=0.5)
    shape = energy.as_dict(28)
    assert shape["joules"] == 0.0 and shape["method"] == "unknown"
    assert shape["joules_per_token"] == 0.0 and shape["tokens_per_joule"] is None


@behaviour("`Energy`")
def test_defaults(implementation):
    """Only joules, method and seconds must be given: samples 0, watts 0.0, source and backend "none", no stages,
    not contended."""
    energy = implementation.Energy(1.5, "estimated", 0.25)
    assert (energy.joules, energy.method, energy.seconds) == (1.5, "estimated", 0.25)
    assert (energy.samples, energy.mean_watts, energy.idle_watts) == (0, 0.0, 0.0)
    assert (energy.source, energy.backend) == ("none", "none")
    assert dict(energy.stages) == {} and energy.contended is False and energy.contended_by == ""


@behaviour("`Energy`")
def test_by_position(implementation):
    """Fields can be given by position, in the order joules, method, seconds, samples, mean_watts, idle_watts, source,
    backend, stages, contended, contended_by."""
    energy = implementation.Energy(1.5, "sampled", 0.25, 4, 20.0, 14.0, "local", "smi_sampler", {}, True, "x (9 MiB)")
    assert energy.as_dict() == {
        "joules": 1.5, "method": "sampled", "seconds": 0.25, "samples": 4, "mean_watts": 20.0, "idle_watts": 14.0,
        "source": "local", "backend": "smi_sampler", "contended": True, "contended_by": "x (9 MiB)"}


@behaviour("`Energy`")
@pytest.mark.parametrize("field", ["joules", "method", "stages", "something_else"])
def test_it_is_frozen(implementation, field):
    """An Energy cannot be changed: setting an attribute raises AttributeError."""
    energy = window(implementation)
    with pytest.raises(AttributeError):
        setattr(energy, field, 0.0)
    assert energy.joules == 550.0


@behaviour("`Energy`")
def test_equality(implementation):
    """Two Energies with the same fields are equal, and otherwise not."""
    assert window(implementation) == window(implementation)
    assert window(implementation) != window(implementation, joules=551.0)
    assert window(implementation) != 550.0


@behaviour("`Energy`")
def test_what_a_dataclass_can_do(implementation):
    """An Energy is a dataclass: `dataclasses.replace`, `fields` and `asdict` work on it."""
    energy = window(implementation, stages={"a": window(implementation)})
    assert dataclasses.replace(energy, joules=1.0).joules == 1.0
    first = [field.name for field in dataclasses.fields(energy)][:11]
    assert first == ["joules", "method", "seconds", "samples", "mean_watts", "idle_watts", "source", "backend",
                     "stages", "contended", "contended_by"]
    assert dataclasses.asdict(energy)["stages"]["a"]["mean_watts"] == 300.0


@behaviour("`Energy`")
def test_copies(implementation):
    """An Energy can be copied and pickled, as what goes through a process pool must."""
    energy = window(implementation, stages={"a": window(implementation, joules=1.0)})
    assert copy.deepcopy(energy) == energy
    assert pickle.loads(pickle.dumps(energy)) == energy


@behaviour("`Energy`")
def test_in_a_log(implementation):
    """Its repr names the class and the fields, and `as_dict` is ready for json."""
    energy = window(implementation, stages={"a": window(implementation)})
    assert repr(energy).startswith("Energy(joules=550.0, method='sampled', seconds=2.0")
    assert json.loads(json.dumps(energy.as_dict(3))) == energy.as_dict(3)


@behaviour("test_stages")
def test_stages_in_print(implementation):
    """`stages` is printed only where marks were made: one dict a stage, in order, without ratios even where the total
    has them."""
    assert "stages" not in window(implementation).as_dict(10)
    stages = {"retrieve": window(implementation, joules=1.0), "generate": window(implementation, joules=2.0)}
    shape = window(implementation, stages=stages).as_dict(10)
    assert list(shape["stages"]) == ["retrieve", "generate"]
    assert set(shape["stages"]["generate"]) == SHAPE and shape["stages"]["generate"]["joules"] == 2.0


@behaviour("test_contention")
def test_contention_in_print(implementation):
    """`contended` and `contended_by` are printed only where the window was contended."""
    assert not {"contended", "contended_by"} & set(window(implementation).as_dict(10))
    shape = window(implementation, contended=True, contended_by="/usr/bin/x (900 MiB)").as_dict(10)
    assert shape["contended"] is True and shape["contended_by"] == "/usr/bin/x (900 MiB)"
