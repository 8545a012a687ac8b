"""Other ranges for a study that has trials: what Study.edit takes and gives."""

from dataclasses import dataclass, replace
from typing import Any

from . import _wire
from .errors import InvalidInput
from .space import Domain, Space, domain_of


@dataclass(frozen=True)
class Edited:
    """What Study.edit changed, or would change."""

    before: "dict[str, Domain]"  # of each parameter that is another one now
    after: "dict[str, Domain]"
    outside: int  # trials that lie outside now: they stay; the sampler no longer uses them
    cancelled: "list[int]"  # of those, what waited and had never run


def _message_of(name: str, domain: Domain) -> Any:
    for key, given in (("default", domain.has_default), ("when", domain.when)):
        if given:
            raise InvalidInput(f"{name}: expected a range or choices alone, got {key}=: an edit "
                               "leaves defaults and conditions as they are")
    if domain.kind == "choices":
        choices = _wire.message("CategoricalDomain")(choices=map(_wire.pack, domain.values))
        return _wire.message("Domain")(categorical_domain=choices)
    low, high = domain.values
    kind = {"float": "FloatDomain", "int": "IntDomain"}[domain.kind]
    bounds = _wire.message(kind)(low=low, high=high, step=domain.step, log=domain.log)
    return _wire.message("Domain")(**{f"{domain.kind}_domain": bounds})


def _domain_of(packed: Any) -> Domain:
    kind = str(packed.WhichOneof("kind"))
    told = getattr(packed, kind)
    if kind == "categorical_domain":
        return Domain("choices", tuple(map(_wire.unpack, told.choices)))
    whole = kind == "int_domain"  # whose step is 1 unless it says otherwise
    step = told.step if (told.step > 1 if whole else told.HasField("step")) else None
    return Domain("int" if whole else "float", (told.low, told.high), log=told.log, step=step)


def domain_of_parameter(packed: Any) -> Domain:
    """Of a message Parameter, with its default and conditions."""
    domain = _domain_of(packed.domain)
    when = {str(one.name): [_wire.unpack(value) for value in one.values] for one in packed.when}
    has_default = packed.HasField("default_value")
    return replace(domain, when=when or None, has_default=has_default,
                   default=_wire.unpack(packed.default_value) if has_default else None)


def edit_request(study: str, space: Space, dry_run: bool) -> Any:
    request = _wire.message("EditStudyRequest")(name=study, validate_only=dry_run)
    for name, given in space.items():
        request.ranges.add(parameter=name, domain=_message_of(name, domain_of(name, given)))
    return request


def edited_of(answer: Any) -> Edited:
    before, after = ({one.parameter: _domain_of(one.domain) for one in ranges}
                     for ranges in (answer.before, answer.after))
    return Edited(before, after, int(answer.outside), list(answer.cancelled))
