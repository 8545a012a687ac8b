"""Optuna, "User-defined sampler": simulated annealing."""
import math
import random

import hpo


class Annealing(hpo.Sampler):
    def __init__(self, temperature=10.0):
        self.rng, self.temperature = random.Random(1), temperature
        self.current = None

    def suggest(self, study):
        ended = [one for one in study.trials if one.state == "completed"]
        if not ended:
            return {name: domain.draw(self.rng) for name, domain in study.space.items()}
        last = ended[-1]
        worse_by = last.value - self.current.value if self.current else -1.0
        if worse_by <= 0 or self.rng.random() < math.exp(-worse_by / self.temperature):
            self.current = last
        self.temperature *= 0.9
        near = {}
        for name, domain in study.space.items():
            low, high = domain.values
            width = 0.1 * (high - low)
            near[name] = min(high, max(low, self.current.params[name] + self.rng.uniform(-width, width)))
        return near


space = {"x": hpo.uniform(-10, 10), "y": hpo.uniform(-5, 5)}
best = hpo.minimize(lambda trial: trial["x"] ** 2 + trial["y"], space, trials=40, sampler=Annealing(), isolate=False)
assert best.number > 0 and best.value < 30
