"""One run of a sampler on a problem of search_problems.py: ours through bin/sampler_runs, or a peer's."""

import json
import math
import subprocess
import tempfile
import warnings

COUNTS = [10, 20, 50, 100, 200, 500, 1000]  # of trials, after which a run's regret is kept
OPTUNAS = ["optuna-tpe", "optuna-gp", "optuna-cma-es", "optuna-random"]
HPO = "optuna-hpo"  # hpo.optuna.HpoSampler
BESIDE_HPO = ["optuna-tpe", "optuna-gp"]
IN_OPTUNA = [*OPTUNAS, HPO]
SMAC = "smac"
PEERS = [*OPTUNAS, SMAC]
SLOW_PEERS = {"optuna-gp": 5, SMAC: 3}  # of how many instances at most
PRUNERS = ["none", "median", "asha", "hyperband"]
PEERS_ON_CURVES = [f"{peer}+{pruner}" for peer in OPTUNAS for pruner in PRUNERS]
OUR_PRUNER = "predictive"  # a study's without one named


class Ours:
    """A study that bin/sampler_runs --ask samples (bench/sampler/asked_study.h); a context manager."""

    def __init__(self, program, sampler, problem, seed, budget):
        self.processor_ms = []  # of each suggestion
        self._space = tempfile.NamedTemporaryFile("w", suffix=".json")  # pylint: disable=consider-using-with
        json.dump({"parameters": problem.space}, self._space)
        self._space.flush()
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program, "--ask", self._space.name, "--sampler", sampler, "--first-seed", str(seed), "--budget",
             str(budget)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._space.close()

    def _write(self, **members):
        self._process.stdin.write(json.dumps(members) + "\n")

    def ask(self):
        """A trial and its configuration."""
        self._write(ask=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{' '.join(self._process.args)} ended with {self._process.wait()}")
        answer = json.loads(answer)
        self.processor_ms.append(answer["processor_ms"])
        return answer["number"], answer["params"]

    def tell(self, trial, loss):
        self._write(number=trial, **({"failed": True} if loss is None else {"loss": loss}))


def optuna_sampler(optuna, name, seed):
    samplers = optuna.samplers
    if name == HPO:
        import hpo.optuna  # pylint: disable=import-outside-toplevel

        return hpo.optuna.HpoSampler(seed=seed)
    if name == "optuna-tpe":
        return samplers.TPESampler(seed=seed, multivariate=True)
    if name == "optuna-gp":
        return samplers.GPSampler(seed=seed)
    if name == "optuna-cma-es":
        return samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)
    return samplers.RandomSampler(seed=seed)


def optuna_pruner(optuna, name):
    pruners = {"none": optuna.pruners.NopPruner, "median": optuna.pruners.MedianPruner,
               "asha": optuna.pruners.SuccessiveHalvingPruner, "hyperband": optuna.pruners.HyperbandPruner}
    return pruners[name]()


def suggested(trial, parameter):
    """The value that an Optuna trial takes."""
    name, kind = parameter["name"], parameter["kind"]
    if kind == "choices":
        return trial.suggest_categorical(name, parameter["choices"])
    if kind == "int":
        return trial.suggest_int(name, parameter["low"], parameter["high"], step=parameter["step"])
    return trial.suggest_float(name, parameter["low"], parameter["high"], log=parameter["log"])


class Optuna:
    """A study of Optuna's, with the sampler's and the pruner's defaults but for TPE's `multivariate`; a context manager.
    """

    def __init__(self, name, problem, seed, pruner="none"):
        import optuna  # pylint: disable=import-outside-toplevel

        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._states = optuna.trial.TrialState
        self._study = optuna.create_study(sampler=optuna_sampler(optuna, name, seed),
                                          pruner=optuna_pruner(optuna, pruner))
        self._problem = problem
        self.processor_ms = []  # not measured

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def ask(self):
        trial = self._study.ask()
        return trial, self._problem.configuration(lambda parameter: suggested(trial, parameter))

    def tell(self, trial, loss):
        if loss is None:
            self._study.tell(trial, state=self._states.FAIL)
        else:
            self._study.tell(trial, loss)

    def prunes(self, trial, loss, step):
        """Reports; whether the trial was pruned, and has ended so."""
        trial.report(loss, step)
        if not trial.should_prune():
            return False
        self._study.tell(trial, state=self._states.PRUNED)
        return True


class Smac:
    """SMAC3's facade for hyperparameter optimization, a random forest, with its defaults, on numbers; a context manager.
    """

    def __init__(self, problem, seed, budget):
        import ConfigSpace  # pylint: disable=import-outside-toplevel
        import smac  # pylint: disable=import-outside-toplevel
        from smac.runhistory import enumerations, dataclasses  # pylint: disable=import-outside-toplevel

        warnings.simplefilter("ignore")
        self._crashed = enumerations.StatusType.CRASHED
        self._value = dataclasses.TrialValue
        space = ConfigSpace.ConfigurationSpace(seed=seed)
        for parameter in problem.space:
            if parameter["kind"] != "float" or parameter["when"]:
                raise ValueError(f"{SMAC}: expected real numbers without conditions, got {parameter['name']}")
            space.add(ConfigSpace.Float(parameter["name"], (parameter["low"], parameter["high"]), log=parameter["log"]))
        self._folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        scenario = smac.Scenario(space, deterministic=True, n_trials=budget, seed=seed,
                                 output_directory=self._folder.name)
        self._study = smac.HyperparameterOptimizationFacade(scenario, lambda config, seed=0: 0.0, overwrite=True,
                                                            logging_level=40)
        self.processor_ms = []  # not measured

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def ask(self):
        trial = self._study.ask()
        return trial, dict(trial.config)

    def tell(self, trial, loss):
        if loss is None:
            self._study.tell(trial, self._value(cost=math.inf, status=self._crashed))
        else:
            self._study.tell(trial, self._value(cost=loss))


def run_of(program, sampler, problem, seed, budget):
    """A study of ours, of a peer where `program` is None or the sampler one for Optuna's loop."""
    if program and sampler not in IN_OPTUNA:
        return Ours(program, sampler, problem, seed, budget)
    return Smac(problem, seed, budget) if sampler == SMAC else Optuna(sampler, problem, seed)


def regrets(study, problem, evaluations, in_flight=1):
    """After each of COUNTS up to `evaluations`: the true regret of the trial that looks best; infinite without one.

    So many trials as are in flight are asked for before one is told, the oldest first.
    """
    best, regret, kept, waiting = math.inf, math.inf, [], []
    asked = 0
    for told in range(1, evaluations + 1):
        while len(waiting) < in_flight and asked < evaluations:
            trial, params = study.ask()
            waiting.append((trial, params, problem.observed(asked, params)))
            asked += 1
        trial, params, loss = waiting.pop(0)
        study.tell(trial, loss)
        if loss is not None and loss < best:
            best, regret = loss, problem.regret(params)
        if told in COUNTS:
            kept.append(regret)
    return kept
