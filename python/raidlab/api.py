"""What the command line and notebooks share: run a study into a folder, analyse a run, write its report.

Invariants:

- This is the only place that joins running and writing: `run` yields outcomes, `results` writes them.
- However a run ends, its folder is finished with what was measured; if that cannot be written, the parts stay, and
  `load_run` finishes them later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISREG

from raidlab.analysis.checks import run_checks
from raidlab.analysis.checks.run_with_findings import load_run
from raidlab.analysis.margins import BestMargins, Contest, Margin, keep_margins, kept_margins, with_simulated
from raidlab.analysis.metrics import METRICS, Analysis, HoldResult
from raidlab.analysis.metrics.repeat_figures import DEFAULT_KINDS
from raidlab.analysis.metrics.run_comparison import RunComparison, Side, compare_runs
from raidlab.analysis.prediction import Prediction, predictions_of
from raidlab.directory import write_file
from raidlab.errors import InputError, OutputError, Problem, RefusedError
from raidlab.published.compare import FILE as COMPARISON
from raidlab.published.compare import PublishedComparison, compare_run, ids_of, write_csv
from raidlab.published.quantities import check_measures
from raidlab.published.rules import (
    Choice,
    ChoicePlan,
    has_choice,
    keep_prices,
    kept_prices,
    load_choice,
    load_prices,
    make_choice,
)
from raidlab.published.scorecard import Sheet, boxes_of, has_plan, load_plan, make_sheet
from raidlab.reading import Plain
from raidlab.recommend import load_need, make_recommendation, need_of, write_recommendation
from raidlab.report import PAGE, write_page
from raidlab.report.answer import contests_of_run, margins_of_run
from raidlab.report.recommendation import write_recommendation_page
from raidlab.results import Run, RunWriter, Unfinished, new_folder, open_unfinished
from raidlab.results.facts import MoreFacts
from raidlab.results.finish import ChangedError
from raidlab.results.folder import what_decides
from raidlab.results.foreign import keep_foreign
from raidlab.results.recommendation import Recommendation
from raidlab.run.cached import KeptCells
from raidlab.run.dask import Cluster
from raidlab.run.execute import Execution
from raidlab.run.interrupt import StopFlag, catching_signals
from raidlab.run.machine_facts import MachineWatch
from raidlab.run.margins import LEAST_REPEATS, SIMULATED_AXES, Pair, SimulatedAxis, TurningPoint, simulated
from raidlab.run.prediction import prediction_study
from raidlab.run.progress import Progress, Silent
from raidlab.run.stream_cells import CopySink
from raidlab.run.targets import Target, refuse_empty, resolve_targets
from raidlab.study import LoadedStudy, load_study
from raidlab.study.find import did_you_mean, nearest
from raidlab.study.load import load_study_text
from raidlab.study.mapping import has_mapping, load_mapping
from raidlab.study.words import ENGINES, ON_THE_CLOCK, SIMULATED

DEFAULT_OUT = "runs"
# As in a study file: TOML's whole numbers end there.
_LARGEST_SEED = 2**63 - 1


def run_study(
    study: str | Path | LoadedStudy,
    *,
    on: Sequence[str] | None = None,
    out: str | Path = DEFAULT_OUT,
    seed: int | None = None,
    quick: bool = False,
    destroy: Sequence[str] = (),
    progress: Progress | None = None,
    argv: Sequence[str] = (),
    stop: StopFlag | None = None,
    machine: CopySink | None = None,
    records: bool = False,
    cache: bool = False,
    cluster: str | None = None,
) -> Run:
    """Run a study and keep the result in a new folder.

    Parameters
    ----------
    study : str, pathlib.Path or LoadedStudy
        A study's name, its file, or one already loaded.
    on : sequence of str, optional
        ``sim``, ``original``, ``emulated``, ``memory``, directories or block devices, or ``ARRAY=PLACE`` for an array
        that stands already; by default what the study says.
    out : str or pathlib.Path
        Where the run folder is made.
    seed : int, optional
        The root seed; the study's by default.
    quick : bool
        Use the study's quick budget.
    destroy : sequence of str
        Block devices that may be overwritten.
    progress : Progress, optional
        Told how far the run is; silent by default.
    argv : sequence of str
        The command to write into the provenance.
    stop : StopFlag, optional
        Ends the run when it is raised; signals raise one of the run's own by default.
    machine : CopySink, optional
        Another machine, for streams that go to one; without it they are left out.
    records : bool
        Keep a row of every single request beside the tables (`Run.requests`).
    cache : bool
        Take what modelled cells gave before from the user's cache, and keep there what is simulated now.
    cluster : str, optional
        The address of a Dask scheduler, or ``local:N``: where modelled cells are simulated in place of this process's
        own workers.

    Returns
    -------
    Run
        Its ``facts["status"]`` says whether it is complete, interrupted or failed.

    Raises
    ------
    InputError, RefusedError
        Before anything is measured or written.
    OutputError
        When the run's folder cannot be written.
    """
    refuse_empty("--out", [str(out)])
    loaded = study if isinstance(study, LoadedStudy) else load_study(study)
    words = _words(loaded, on)
    root_seed = loaded.study.seed if seed is None else seed
    execution = _resolved(loaded, words, destroy, root_seed, quick, progress, stop)
    execution.machine = machine
    execution.cache = KeptCells() if cache else None
    known = None if records else _known_tables(execution, words)
    execution.prepare(is_known=known is not None)
    with ExitStack() as held:
        held.enter_context(catching_signals(execution.stop))
        execution.cluster = _connected(cluster, execution, held, records=records)
        writer = RunWriter(
            new_folder(Path(out), loaded.study.name),
            execution.loaded,
            seed=root_seed,
            targets=words,
            quick=quick,
            argv=list(argv) or ["raidlab", "run", loaded.study.name],
            far_machine=None if machine is None else machine.name,
            records=records,
        )
        execution.records = writer.folder if records else None
        if known is not None and (run := _known_run(known, execution, writer)) is not None:
            return run
        return _run(execution, writer)


def resume_run(
    folder: str | Path,
    study: str | Path | LoadedStudy | None = None,
    *,
    on: Sequence[str] | None = None,
    seed: int | None = None,
    quick: bool = False,
    destroy: Sequence[str] = (),
    progress: Progress | None = None,
    stop: StopFlag | None = None,
    machine: CopySink | None = None,
    cache: bool = False,
    cluster: str | None = None,
) -> Run:
    """Go on with a run that was killed, interrupted or failed, in its own folder; what is done is not run again.

    Parameters
    ----------
    folder : str or pathlib.Path
        The run folder. One that is complete is only read.
    study : str, pathlib.Path or LoadedStudy, optional
        Its study, if it is not where it was.
    on, seed, quick
        As the run was started, or left out.
    destroy : sequence of str
        Block devices that may be overwritten; named anew, because names of devices change.
    progress, stop
        As for `run_study`.
    machine : CopySink, optional
        Named anew too, if the run had one.
    cache, cluster
        As for `run_study`; neither changes what comes of it.

    Returns
    -------
    Run

    Raises
    ------
    InputError, RefusedError
        When it is no run that can go on, or not as it was; then nothing is changed.
    OutputError
        When the run's folder cannot be written.
    """
    progress = progress or Silent()
    unfinished = open_unfinished(Path(folder))
    if unfinished is None:
        progress.note(f"{folder} is complete: nothing is left to run")
        return load_run(folder)
    with ExitStack() as held:
        held.callback(unfinished.close)
        loaded = study if isinstance(study, LoadedStudy) else load_study(study or unfinished.study)
        words, root_seed, is_quick = _as_it_was(unfinished, on, seed, quick)
        unfinished.refuse_other(loaded, seed=root_seed, targets=words, quick=is_quick)
        unfinished.refuse_other_machine(None if machine is None else machine.name)
        execution = _resolved(loaded, words, destroy, root_seed, is_quick, progress, stop)
        execution.prepare()
        execution.machine = machine
        execution.cache = KeptCells() if cache else None
        execution.known = unfinished.answers
        execution.records = unfinished.folder if unfinished.facts.get("records") else None
        execution.check_members = unfinished.refuse_other_members
        execution.cluster = _connected(cluster, execution, held, records=execution.records is not None)
        execution.progress.note(f"going on with {folder}: {len(unfinished.answers)} cells are done")
        with catching_signals(execution.stop):
            return _run(execution, RunWriter.resumed(unfinished, execution.loaded))


def _connected(address: str | None, execution: Execution, held: ExitStack, *, records: bool) -> Cluster | None:
    """The cluster that a run is to use, held for as long as the stack is; refused where it has nothing to do."""
    if address is None:
        return None
    if not any(target.name in SIMULATED for target in execution.targets):
        if execution.machine is not None:
            # It names one of the cluster's.
            return None
        message = "only modelled cells are run on a cluster, and this run has none"
        raise InputError.one("--cluster", message, value=f"'{address}'", accepted="--on sim, or --on original")
    if records:
        message = "rows of single requests are written where the run folder is"
        raise InputError.one("--cluster", message, value=f"'{address}'", accepted="a run without --records")
    return held.enter_context(Cluster(address))


def predict(
    volume: str | Path,
    device: str | Path,
    study: str | Path | LoadedStudy = "slow-box",
    *,
    tree: str | None = None,
    out: str | Path = DEFAULT_OUT,
    seed: int | None = None,
    quick: bool = False,
    destroy: Sequence[str] = (),
    progress: Progress | None = None,
    stop: StopFlag | None = None,
) -> Run:
    """Measure an array that stands already, and simulate its twin under the same work; keep both in a new folder.

    The study that says so is kept beside the folder. `predictions` sets the two beside one another.

    Parameters
    ----------
    volume : str or pathlib.Path
        The array's block device, a directory of its file system, or a file there.
    device : str or pathlib.Path
        The model of its members, by name or file.
    study : str, pathlib.Path or LoadedStudy
        Whose workloads and loads are run.
    tree : str, optional
        What the array is made of, where the kernel cannot tell.
    out : str or pathlib.Path
        Where the run folder is made.
    seed : int, optional
        The root seed; the study's by default.
    quick : bool
        Use the study's quick budget.
    destroy : sequence of str
        The volume, if it may be overwritten.
    progress : Progress, optional
        Told how far the run is; silent by default.
    stop : StopFlag, optional
        Ends the run when it is raised.

    Returns
    -------
    Run

    Raises
    ------
    InputError, RefusedError
        Before anything is measured: where raidlab has no model of what stands there, with the reason.
    OutputError
        When the run's folder cannot be written.
    """
    refuse_empty("--out", [str(out)])
    loaded = study if isinstance(study, LoadedStudy) else load_study(study)
    made = prediction_study(str(volume), str(device), loaded, tree=tree, destroy=destroy, quick=quick)
    told = progress or Silent()
    for note in made.notes:
        told.note(note)
    file = _kept_study(Path(out), made.text)
    argv = ["raidlab", "run", str(file)]
    argv += ["--seed", str(seed)] if seed is not None else []
    argv += ["--quick"] if quick else []
    argv += [word for one in destroy for word in ("--destroy", one)]
    return run_study(
        file, on=made.on, out=out, seed=seed, quick=quick, destroy=destroy, progress=told, argv=argv, stop=stop
    )


def _kept_study(folder: Path, text: str) -> Path:
    """The file of a study that raidlab wrote, in the folder of its runs."""
    name = f"{load_study_text(text, folder / 'study.toml').study.name}.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / name, text.encode())
    except OSError as error:
        raise OutputError(f"{error.filename or folder / name}: cannot be written: {error.strerror}") from None
    return folder / name


def predictions(run: Run | str | Path) -> list[Prediction]:
    """Set every array of a run that has a twin beside what that gives in the simulator.

    Parameters
    ----------
    run : Run, str or pathlib.Path
        A run or its folder.
    """
    analysis = analyse(run)
    return predictions_of(analysis, run_checks(analysis))


def _words(loaded: LoadedStudy, on: Sequence[str] | None) -> list[str]:
    """Where a study is to run."""
    words = list(on) if on else loaded.study.default_targets
    if not words:
        raise InputError.one(
            "--on",
            f"the study '{loaded.study.name}' says neither where it runs nor what it simulates",
            accepted="memory, a directory or block devices; or a table [sim] in the study",
        )
    return words


def _as_it_was(
    unfinished: Unfinished, on: Sequence[str] | None, seed: int | None, quick: bool
) -> tuple[list[str], int, bool]:
    """Targets, seed and budget: what the run had, where nothing else is said."""
    facts = unfinished.facts
    words = list(on) if on else facts["targets"]
    return words, facts["seed"] if seed is None else seed, quick or facts["quick"]


def _resolved(
    loaded: LoadedStudy,
    words: list[str],
    destroy: Sequence[str],
    seed: int,
    quick: bool,
    progress: Progress | None,
    stop: StopFlag | None,
) -> Execution:
    """An execution on its targets, which is to be prepared before it can begin."""
    if not 0 <= seed <= _LARGEST_SEED:
        raise InputError.one("--seed", "is no root seed", value=str(seed), accepted=f"0 to {_LARGEST_SEED}")
    check_figures(loaded)
    targets = resolve_targets(words, destroy, loaded.study)
    _check_sections(loaded, targets)
    return Execution(loaded, targets, quick, seed=seed, progress=progress or Silent(), stop=stop or StopFlag())


def _known_tables(execution: Execution, words: list[str]) -> dict[str, Path] | None:
    """The tables that the same run gave before, where the cache has them."""
    if execution.cache is None or not execution.is_repeatable:
        return None
    decisive = what_decides(execution.loaded, seed=execution.seed, targets=words, quick=execution.quick)
    try:
        return execution.cache.tables_of(decisive)
    except ValueError as error:
        execution.progress.note(f"{error}, so tables are made again")
        return None


def _known_run(tables: Mapping[str, Path], execution: Execution, writer: RunWriter) -> Run | None:
    """The run as it was made before; None where a table is not what it was."""
    try:
        writer.finish_with(tables)
    except ChangedError as error:
        error.file.unlink(missing_ok=True)
        execution.progress.note(f"{error}, so tables are made again")
        return None
    found = load_run(writer.folder)
    cells = f"its {found.cells.height} cells were" if found.cells.height > 1 else "its cell was"
    execution.progress.note(f"{cells} simulated before (--no-cache has them simulated again)")
    return found


def _run(execution: Execution, writer: RunWriter) -> Run:
    """Run, write what comes of it, and finish the folder however it ends."""
    # What is simulated does not depend on this machine, and its result must not either.
    is_timed = any(target.is_live or target.name == "emulated" for target in execution.targets)
    watch = MachineWatch() if is_timed else None
    try:
        # Whatever stops the writing ends the run too, and takes its member files away.
        execution.write_to(writer)
    except (InputError, RefusedError) as error:
        writer.give_up(str(error), execution.live_members)
        raise
    except BaseException:
        # The parts stay: they can be shown, and the run can go on.
        writer.close()
        raise
    more: MoreFacts = {} if watch is None else {"machine": watch.facts()}
    execution.finish(writer, {**more, **execution.more_facts()})
    found = load_run(writer.folder)
    # What was begun by another raidlab is not what this one's code makes.
    is_own = execution.is_repeatable and not execution.known
    if execution.cache is not None and is_own and execution.status == "complete":
        digests = {name: table["sha256"] for name, table in found.facts["tables"].items()}
        facts = found.facts
        decisive = what_decides(execution.loaded, seed=facts["seed"], targets=facts["targets"], quick=facts["quick"])
        execution.cache.put_tables(decisive, writer.folder, digests)
        execution.cache.trim()
    return found


def analyse(run: Analysis | Run | str | Path) -> Analysis:
    """Work out points, metrics and comparisons of a run.

    Parameters
    ----------
    run : Analysis, Run, str or pathlib.Path
        A run or its folder; what is worked out already stays as it is.
    """
    if isinstance(run, Analysis):
        return run
    return Analysis(run if isinstance(run, Run) else load_run(run))


def compare(
    a: Run | str | Path,
    b: Run | str | Path,
    *,
    arrays: tuple[str, str] | None = None,
    targets: tuple[str, str] | None = None,
    metrics: Sequence[str] = DEFAULT_KINDS,
    per: str = "array",
    unequal_capacity: bool = False,
) -> RunComparison:
    """Compare run B with run A.

    Parameters
    ----------
    a, b : Run, str or pathlib.Path
        Runs or their folders.
    arrays : tuple of str, optional
        An array of A and one of B; by default arrays of the same name are compared.
    targets : tuple of str, optional
        A target of A and one of B, such as ``("sim", "emulated")``; by default targets of the same name are compared.
    metrics : sequence of str
        Of `raidlab.analysis.metrics.repeat_figures.REPEAT_FIGURES`.
    per : str
        What rates are divided by: ``array`` (nothing), ``disk`` or ``user_capacity``.
    unequal_capacity : bool
        Compare arrays of different user capacity too.

    Raises
    ------
    InputError
        When nothing of the two can be compared, with the reasons.
    """
    parts = zip((a, b), arrays or (None, None), targets or (None, None), ("A", "B"), strict=True)
    sides = [
        Side(run if isinstance(run, Run) else load_run(run), array, word, target) for run, array, target, word in parts
    ]
    return compare_runs(*sides, kinds=metrics, per=per, unequal_capacity=unequal_capacity)


def compare_with_published(run: Analysis | Run | str | Path, study: str | Path | LoadedStudy) -> PublishedComparison:
    """Set what a study published beside what a run of it gives.

    A study without ``quantities.toml``, or with mistakes in it, or another than the run's is an `InputError`.
    """
    analysis = analyse(run)
    loaded = study if isinstance(study, LoadedStudy) else load_study(study)
    if analysis.run.study.name != loaded.study.name:
        raise InputError.one(
            "--run",
            f"is a run of the study '{analysis.run.study.name}'",
            value=f"'{analysis.run.folder}'",
            accepted=f"a run of {loaded.study.name}",
        )
    return compare_run(analysis, load_mapping(loaded.file))


def published_beside(
    run: Analysis | Run, study: str | Path | LoadedStudy, *, keep: bool = True
) -> PublishedComparison | None:
    """What a study published beside a run, and its conclusions on every target.

    None of a run neither on the study's own hardware nor on members on the clock, where it has no conclusions.

    With ``keep`` its ``comparison.csv`` is written into the run's folder.
    """
    loaded = study if isinstance(study, LoadedStudy) else load_study(study)
    if not has_mapping(loaded.file):
        return None
    mapping, analysis = load_mapping(loaded.file), analyse(run)
    is_asked = {mapping.quantities.target, *ON_THE_CLOCK} & set(analysis.run.cells["target"])
    if not is_asked and not mapping.quantities.conclusion:
        return None
    comparison = compare_run(analysis, mapping)
    if keep:
        try:
            with analysis.run.directory() as folder:
                write_csv(comparison.rows, folder)
        except OSError as error:
            raise OutputError(f"{error.filename or analysis.run.folder}: cannot be written: {error.strerror}") from None
    return comparison


def choice_of(run: Analysis | Run | str | Path, study: str | Path | LoadedStudy) -> Choice | None:
    """The study's rules of choice, answered with a run and the prices kept with it; None where there are no rules."""
    loaded = study if isinstance(study, LoadedStudy) else load_study(study)
    analysis = analyse(run)
    if not has_choice(loaded.file) or not analysis.points:
        return None
    plan = load_choice(loaded.file)
    return make_choice(plan, analysis, kept_prices(analysis.run.folder, plan))


def sheet_of(run: Analysis | Run | str | Path, study: str | Path | LoadedStudy) -> Sheet | None:
    """The evaluation sheet of every box of a run; None where the study is no acceptance test, or none of it was run."""
    loaded = study if isinstance(study, LoadedStudy) else load_study(study)
    if not has_plan(loaded.file):
        return None
    plan, boxes = load_plan(loaded.file), boxes_of(analyse(run))
    try:
        return make_sheet(plan, boxes)
    except InputError:
        # A run that was stopped early has no result of any test.
        return None


def others_of(plan: ChoicePlan, words: Sequence[str]) -> dict[str, tuple[Analysis, str]]:
    """Candidates whose figures come from other runs, as ``CANDIDATE=RUN`` or ``CANDIDATE=RUN:ARRAY``."""
    found = {}
    for word in words:
        name, equals, rest = word.partition("=")
        folder, _, array = rest.partition(":")
        if not equals or name not in plan.candidate:
            accepted = f"CANDIDATE=RUN, of {', '.join(plan.candidate)}"
            raise InputError.one("--of", "names no candidate", value=f"'{word}'", accepted=accepted)
        other = analyse(folder)
        arrays = list(dict.fromkeys(point.array for point in other.points))
        if array not in arrays and (array or len(arrays) != 1):
            message = "is not clear: which array of that run?"
            raise InputError.one("--of", message, value=f"'{word}'", accepted=", ".join(arrays))
        found[name] = (other, array or arrays[0])
    return found


def with_prices(run: Run | str | Path, study: str | Path | LoadedStudy, prices: str | Path) -> None:
    """Keep a file of the user's prices with a run, once it is known to be one of a study with rules of choice."""
    loaded = study if isinstance(study, LoadedStudy) else load_study(study)
    load_prices(Path(prices), load_choice(loaded.file))
    keep_prices(analyse(run).run.folder, Path(prices))


def simulate_margins(
    run: Run | str | Path,
    study: str | Path | LoadedStudy | None = None,
    *,
    along: Sequence[str] = SIMULATED_AXES,
    workloads: Sequence[str] = (),
    repeats: int = LEAST_REPEATS,
    progress: Progress | None = None,
    stop: StopFlag | None = None,
) -> list[BestMargins]:
    """Find by simulation where each best of a run turns, and keep that in its folder (``margins.json``).

    Parameters
    ----------
    run : Run, str or pathlib.Path
        A run or its folder, with cells on ``sim`` or ``original``; nothing is ever measured.
    study : str, pathlib.Path or LoadedStudy, optional
        Its study, if it is not where it was.
    along : sequence of str
        Of ``read``, ``chunk``, ``response``, ``depth``.
    workloads : sequence of str
        Names of workloads whose bests are looked at; all without any.
    repeats : int
        How often each place is simulated, with seeds common to both arrays.
    progress : Progress, optional
        Told what is looked at; silent by default.
    stop : StopFlag, optional
        Ends it when it is raised; what was found before is kept.

    Returns
    -------
    list of BestMargins
        All margins of the run, the simulated ones among them.

    Raises
    ------
    InputError
        When nothing of the run was simulated, or its study is not as it was.
    """
    analysis = analyse(run)
    findings = run_checks(analysis)
    contests = contests_of_run(analysis, findings, SIMULATED)
    _check_along(along)
    if not contests:
        having = ", ".join(analysis.targets) or "no cell"
        message = "has no best on a simulated target whose margins could be found"
        raise InputError.one("RUN", message, value=having, accepted="a run on sim or original with one best or more")
    contests = _of_workloads(contests, workloads)
    loaded = _as_run(analysis.run, study)
    axes = [axis for axis in SIMULATED_AXES if axis in along]
    note = (progress or Silent()).note
    kept = kept_margins(analysis.run)
    for contest in contests:
        kept = [*kept, _simulated(loaded, analysis.run, contest, axes, repeats, stop, note, kept)]
        _keep(analysis.run, with_simulated(margins_of_run(analysis, findings), kept))
    return margins_of_run(analysis, findings)


def _of_workloads(contests: list[Contest], workloads: Sequence[str]) -> list[Contest]:
    """Those of some workloads, or all."""
    known = list(dict.fromkeys(contest.comparison.workload for contest in contests))
    for name in workloads:
        if name not in known:
            message = f"has no best that could be moved{did_you_mean(name, known)}"
            raise InputError.one("--workload", message, value=f"'{name}'", accepted=", ".join(known))
    return [contest for contest in contests if not workloads or contest.comparison.workload in workloads]


def _simulated(
    loaded: LoadedStudy,
    run: Run,
    contest: Contest,
    axes: Sequence[SimulatedAxis],
    repeats: int,
    stop: StopFlag | None,
    note: Callable[[str], None],
    kept: Sequence[BestMargins],
) -> BestMargins:
    """The simulated margins of one best; those along other axes stay as they are kept."""
    comparison, first, second = contest.comparison, contest.first, contest.rivals[0]
    held = first.held if contest.held else None
    pair = Pair(
        comparison.target,
        comparison.workload,
        first.array,
        second.array,
        first.point.depth,
        None if held is None else held.target_ms,
    )
    facts = run.facts
    found = simulated(
        loaded, pair, axes, seed=facts["seed"], repeats=repeats, quick=facts["quick"], stop=stop, note=note
    )
    turns = [_margin_of(axis, crossing, pair.second, held) for axis, crossing in found]
    key = (pair.target, pair.workload, pair.first)
    before = [turn for one in kept if (one.target, one.workload, one.first) == key for turn in one.turns]
    turns += [turn for turn in before if turn.how == "simulated" and turn.axis not in axes]
    return BestMargins(*key, pair.second, tuple(turns), contest.level, contest.beside)


def _margin_of(axis: SimulatedAxis, crossing: TurningPoint, second: str, held: HoldResult | None) -> Margin:
    factor = 100.0 if axis == "read" else 1.0
    low, high = (None if end is None else factor * end for end in (crossing.low, crossing.high))
    percentile = held.percentile if axis == "response" and held is not None else None
    return Margin(axis, factor * crossing.now, factor * crossing.at, low, high, second, "simulated", percentile)


def _check_along(along: Sequence[str]) -> None:
    for axis in along:
        if axis not in SIMULATED_AXES:
            raise InputError.one("--along", "is no axis", value=f"'{axis}'", accepted=", ".join(SIMULATED_AXES))


def _as_run(run: Run, study: str | Path | LoadedStudy | None) -> LoadedStudy:
    """The study of a run, exactly as it was run."""
    loaded = study if isinstance(study, LoadedStudy) else load_study(study) if study is not None else None
    if loaded is None:
        argv = run.facts["argv"]
        loaded = load_study(argv[2] if len(argv) > 2 else run.study.name)
    if (loaded.study.name, loaded.sha256) != (run.study.name, run.facts["study"]["sha256"]):
        message = f"is not the study of this run, '{run.study.name}', as it was run"
        raise InputError.one(
            "STUDY", message, value=f"'{loaded.file}'", accepted="the study file that was run, unchanged"
        )
    return loaded


def _keep(run: Run, margins: Sequence[BestMargins]) -> None:
    try:
        with run.directory() as folder:
            keep_margins(margins, folder)
    except OSError as error:
        raise OutputError(f"{error.filename or run.folder}: cannot be written: {error.strerror}") from None


def write_report(
    run: Run | str | Path, *, foreign: Sequence[str | Path] = (), prices: str | Path | None = None
) -> Path:
    """Write ``report.html`` and the figures (SVG, PNG) into a run's folder; returns the page's path.

    Parameters
    ----------
    run : Run, str or pathlib.Path
        A run or its folder.
    foreign : sequence of str or pathlib.Path
        CSV files with results of others, to be drawn beside; they are kept in the run's folder in the place of earlier
        ones.
    prices : str or pathlib.Path, optional
        A TOML file with prices for the study's rules of choice; kept in the run's folder.
    """
    opened = analyse(run).run
    loaded = study_of(opened)
    if prices is not None:
        if loaded is None:
            message = f"the study '{opened.study.name}' is not at hand as it was run"
            raise InputError.one("--prices", message, value=f"'{prices}'", accepted="prices for a study that is")
        with_prices(opened, loaded, prices)
    if foreign:
        keep_foreign(opened.folder, [Path(file) for file in foreign])
        opened = load_run(opened.folder)
    analysis = analyse(opened)
    if loaded is None:
        return write_page(analysis, left_out=why_left_out(opened))
    parts = published_beside(analysis, loaded), choice_of(analysis, loaded), sheet_of(analysis, loaded)
    return write_page(analysis, *parts)


def is_page_current(run: Run) -> bool:
    """Whether the page of a run has what its ``comparison.csv`` has: it is no older, and did not leave that out."""
    try:
        table, page = ((run.folder / name).lstat() for name in (COMPARISON, PAGE))
    except OSError:
        return False
    return not why_left_out(run) and S_ISREG(page.st_mode) and page.st_mtime_ns >= table.st_mtime_ns


def why_left_out(run: Run) -> str:
    """Why what a study published does not stand beside a run of it; nothing where it can, or there is none."""
    try:
        loaded = load_study(run.study.name)
    except InputError:
        return ""
    if loaded.sha256 == run.facts["study"]["sha256"] or not (has_mapping(loaded.file) or has_choice(loaded.file)):
        return ""
    return (
        f"What the study published and concluded is left out: {loaded.file.name} of '{run.study.name}' is no longer as "
        f"it was run. 'raidlab study compare {run.study.name} --run {run.folder}' compares the run with it as it is."
    )


def published_again(run: Analysis | Run, *, keep: bool = True) -> PublishedComparison | None:
    """What its study published beside a run, where that study is still at hand as it was.

    With ``keep`` its ``comparison.csv`` is written into the run's folder.
    """
    loaded = study_of(run.run if isinstance(run, Analysis) else run)
    return None if loaded is None else published_beside(run, loaded, keep=keep)


def study_of(run: Run) -> LoadedStudy | None:
    """The study of a run, where it is still at hand as it was."""
    try:
        loaded = load_study(run.study.name)
    except InputError:
        return None
    return loaded if loaded.sha256 == run.facts["study"]["sha256"] else None


def recommend(
    need: str | Path | Mapping[str, Plain],
    *,
    out: str | Path | None = None,
    quick: bool = False,
    progress: Progress | None = None,
    stop: StopFlag | None = None,
) -> Recommendation:
    """Which array to build: the cheapest or the fastest that meets a need.

    Parameters
    ----------
    need : str, pathlib.Path or mapping
        The file of a need, or the same as a table.
    out : str or pathlib.Path, optional
        A folder for the answer, its page and a study that measures it; nothing is written by default.
    quick : bool
        A third of the runs.
    progress, stop
        As for `run_study`.

    Returns
    -------
    Recommendation
        The document of ``recommendation.json``; ``answer`` is None where nothing meets the need.

    Raises
    ------
    InputError
        Before anything is simulated.
    OutputError
        When the folder cannot be written.
    """
    loaded = load_need(Path(need)) if isinstance(need, str | Path) else need_of(need)
    if out is not None:
        refuse_empty("out", [str(out)])
    answer = make_recommendation(loaded, quick=quick, progress=progress, stop=stop)
    if out is not None:
        write_recommendation(answer, Path(out))
        write_recommendation_page(answer, Path(out))
    return answer


def check_figures(loaded: LoadedStudy) -> None:
    """Refuse a study whose figures name metrics that there are not, or what was not printed, or measures of no kind."""
    known = {metric.kind for metric in METRICS}
    named: list[tuple[tuple[str | int, ...], str | None]] = []
    for index, figure in enumerate(loaded.study.figure):
        named += [(("figure", index, "metrics", number), name) for number, name in enumerate(figure.metrics)]
        named += [(("figure", index, "against"), figure.against), (("figure", index, "mark"), figure.mark)]
    problems = [
        loaded.problem(place, "is no metric", nearest(name, sorted(known)))
        for place, name in named
        if name is not None and name not in known
    ]
    problems += _not_printed(loaded)
    if problems:
        raise InputError(problems)
    if has_mapping(loaded.file):
        check_measures(loaded.file.parent)


def _not_printed(loaded: LoadedStudy) -> list[Problem]:
    """What figures name as printed and nothing printed is called."""
    named: list[tuple[tuple[str | int, ...], str]] = []
    for index, figure in enumerate(loaded.study.figure):
        named += [(("figure", index, "printed", number), pattern) for number, pattern in enumerate(figure.printed)]
        for place, one in enumerate(figure.series):
            where = ("figure", index, "series", place, "printed")
            named += [((*where, number), pattern) for number, pattern in enumerate(one.printed)]
    if not named:
        return []
    ids = ids_of(load_mapping(loaded.file)) if has_mapping(loaded.file) else []
    tables = ", ".join(dict.fromkeys(f"{one.partition(':')[0]}:*" for one in ids if ":" in one))
    return [
        loaded.problem(place, "is nothing that was printed", "; ".join(filter(None, ("ids of claims", tables))))
        for place, pattern in named
        if not any(fnmatchcase(one, pattern) for one in ids)
    ]


def _check_sections(loaded: LoadedStudy, targets: list[Target]) -> None:
    """A target without its table in the study is refused before anything is made."""
    for target in targets:
        if not loaded.study.has_target(target.name):
            words = {"live": "memory, a directory, a block device"}
            having = [name for name in ENGINES if loaded.study.has_target(name)]
            raise InputError.one(
                "--on",
                f"the study '{loaded.study.name}' has no table [{target.name}]",
                value=f"'{target.name}'",
                accepted=", ".join(words.get(name, name) for name in having),
            )
