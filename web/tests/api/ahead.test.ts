import { afterEach, expect, test, vi } from "vitest";
import { askAhead, call } from "../../src/api/call";
import { askForStudy, historyRequest } from "../../src/api/first";

function answerWith(...answers: { status: number; body: unknown }[]) {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (url: string) => {
    asked.push(url);
    const { status, body } = answers[Math.min(asked.length, answers.length) - 1] ?? { status: 500, body: {} };
    return Promise.resolve(new Response(JSON.stringify(body), { status }));
  });
  return asked;
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("the next call of the same words takes the answer that was asked for ahead, once", async () => {
  const asked = answerWith({ status: 200, body: { total: "1" } }, { status: 200, body: { total: "2" } });
  askAhead("StudyService/GetHistory", historyRequest("s"));
  expect(await call("StudyService/GetHistory", historyRequest("s"))).toEqual({ total: "1" });
  expect(await call("StudyService/GetHistory", historyRequest("s"))).toEqual({ total: "2" });
  expect(asked).toHaveLength(2);
});

test("an error is seen by the one who takes it, and by nobody else", async () => {
  answerWith({ status: 404, body: { code: "NOT_FOUND", message: "no study s" } });
  askAhead("StudyService/GetHistory", historyRequest("s"));
  await expect(call("StudyService/GetHistory", historyRequest("s"))).rejects.toThrow("no study s");
});

test("an answer that nobody took in time is asked for again", async () => {
  vi.useFakeTimers();
  const asked = answerWith({ status: 200, body: {} });
  askAhead("StudyService/GetHistory", historyRequest("s"));
  vi.advanceTimersByTime(10_000);
  await call("StudyService/GetHistory", historyRequest("s"));
  expect(asked).toHaveLength(2);
});

test("a page of a study asks for what it shows", () => {
  const asked = answerWith({ status: 200, body: {} });
  askForStudy("s", "trials/3");
  expect(asked).toEqual(["/api/StudyService/GetStudy"]);
  askForStudy("s", "");
  expect(asked.slice(1)).toEqual(["GetStudy", "GetHistory", "ListTrials"].map((name) => `/api/StudyService/${name}`));
});
