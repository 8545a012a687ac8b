"""What a brush's frame takes at 10,000 trials, in Chromium without a GPU.

usage: measure_brush.py ADDRESS STUDY    ADDRESS: http://127.0.0.1:8080
Drags a brush over two axes of the parallel coordinates and prints, in milliseconds, the time that
the page's own code had of each frame, the whole frame's on the main thread with painting, and the
time between frames. Needs playwright for Python.
"""
import os
import statistics
import sys
import urllib.parse

from playwright.sync_api import sync_playwright

LISTEN = """
window.brushes = []; window.gaps = []; window.works = [];
const channel = new MessageChannel(); let began = 0;
channel.port1.onmessage = () => { if (window.listening) works.push(performance.now() - began); }; let before = 0;
new PerformanceObserver((list) => { for (const one of list.getEntries()) if (one.name === "brush frame") brushes.push(one.duration); })
  .observe({ entryTypes: ["measure"] });
window.listening = false;
const frame = (now) => { if (before && window.listening) gaps.push(now - before); before = now;
  began = performance.now(); channel.port2.postMessage(0); requestAnimationFrame(frame); };
requestAnimationFrame(frame);
"""


def summary(name: str, values: list[float]) -> str:
    ordered = sorted(values)
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return f"{name}: {len(ordered)} frames, median {statistics.median(ordered):.1f} ms, p95 {at(0.95):.1f} ms, longest {ordered[-1]:.1f} ms"


def thread_seconds(tools) -> float:
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def drag(page, strip, start: float, stop: float, steps: int) -> None:
    box = strip.bounding_box()
    x = box["x"] + box["width"] / 2
    page.mouse.move(x, box["y"] + box["height"] * start)
    page.mouse.down()
    for step in range(steps):
        share = start + (stop - start) * (step + 1) / steps
        page.mouse.move(x, box["y"] + box["height"] * share)
        page.wait_for_timeout(12)
    page.mouse.up()


def main() -> None:
    address, study = sys.argv[1:3]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(f"{address}/studies/{urllib.parse.quote(study, safe='')}/analysis?charts=parallel")
        page.wait_for_selector(".strip", timeout=60_000)
        page.wait_for_timeout(4000)
        page.evaluate(LISTEN)
        strips = page.query_selector_all(".strip")
        drag(page, strips[0], 0.95, 0.6, 10)  # what the machine draws in a frame is learnt first
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = thread_seconds(tools)
        page.evaluate("brushes.length = 0; gaps.length = 0; works.length = 0; listening = true")
        drag(page, strips[0], 0.98, 0.05, 60)
        drag(page, strips[2], 0.2, 0.9, 60)
        page.evaluate("listening = false")
        frames = len(page.evaluate("works"))
        each = (thread_seconds(tools) - before) * 1e3 / max(1, frames)
        print(f"processor time of the main thread, other programs' left out: mean {each:.1f} ms of each of {frames} frames")
        print(summary("brush, the page's code", page.evaluate("brushes")))
        print(summary("whole frame on the main thread", page.evaluate("works")))
        print(summary("between frames", page.evaluate("gaps")))
        browser.close()


if __name__ == "__main__":
    main()
