// Parameters of a search space: how their values are read from what people type, and shown.
import type { Domain, Parameter, Value } from "../api/messages";
import { int, scalar, scalarText } from "../api/values";
import { number } from "./format";

// "1e-05 to 0.001, logarithmic", "8, 16, 32".
export function domainText(domain: Domain | undefined): string {
  if (domain?.float_domain) {
    const { low = 0, high = 0, step, log } = domain.float_domain;
    return `${number(Number(low))} to ${number(Number(high))}${step === undefined ? "" : `, step ${number(Number(step))}`}${log ? ", logarithmic" : ""}`;
  }
  if (domain?.int_domain) {
    const { low, high, step, log } = domain.int_domain;
    return `${int(low)} to ${int(high)}${int(step) > 1 ? `, step ${int(step)}` : ""}${log ? ", logarithmic" : ""}`;
  }
  return (domain?.categorical_domain?.choices ?? []).map((choice) => scalarText(scalar(choice))).join(", ");
}

// "only where model.name is bert or roberta"; "" where it always exists.
export function conditionText(parameter: Parameter): string {
  const parts = (parameter.when ?? []).map(
    ({ name, values }) => `${name} is ${(values ?? []).map((value) => scalarText(scalar(value))).join(" or ")}`,
  );
  return parts.length === 0 ? "" : `only where ${parts.join(" and ")}`;
}

// What was typed, as a value of the parameter's kind. Throws an Error that says what was expected.
export function readValue(parameter: Parameter, text: string): Value {
  const typed = text.trim();
  const domain = parameter.domain;
  if (domain?.float_domain) {
    const value = Number(typed);
    if (typed === "" || !Number.isFinite(value)) throw new Error(`${parameter.name}: expected a number, got “${typed}”`);
    return { double_value: value };
  }
  if (domain?.int_domain) {
    if (!/^[+-]?\d+$/.test(typed)) throw new Error(`${parameter.name}: expected a whole number, got “${typed}”`);
    return { int_value: typed };
  }
  const choices = domain?.categorical_domain?.choices ?? [];
  const choice = choices.find((value) => scalarText(scalar(value)) === typed);
  if (choice === undefined) {
    throw new Error(`${parameter.name}: expected one of ${domainText(domain)}, got “${typed}”`);
  }
  return choice;
}

export function valueText(value: Value | undefined): string {
  return value === undefined ? "" : scalarText(scalar(value));
}
