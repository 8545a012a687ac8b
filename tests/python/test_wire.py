"""hpo._wire: values on their way to the server and back."""

import pytest

import hpo
from hpo import _wire

VALUES = [None, True, False, 0, 1, -3, 0.5, 1.0, "", "null", "1", "naïve"]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_with_its_type(value):
    back = _wire.unpack(_wire.message("Value").FromString(_wire.pack(value).SerializeToString()))
    assert back == value
    assert type(back) is type(value)


def test_none_is_null_and_not_an_absent_value():
    assert _wire.pack(None).WhichOneof("kind") == "null_value"
    assert _wire.message("Value")().WhichOneof("kind") is None


def test_what_is_no_scalar_is_refused():
    with pytest.raises(hpo.InvalidInput, match="expected None, a bool, a number or a string, got"):
        _wire.pack([1])
