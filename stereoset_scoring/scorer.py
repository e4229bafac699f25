"""A scorer: option scores of context association tests from one checkpoint."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stereoset_scoring.engines.fit import check_fit
from stereoset_scoring.engines.heap import kept_heap
from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.registry import (
    METHODS,
    check_names,
    check_options,
    choose_method,
    heads_of,
    preset_named,
)
from stereoset_scoring.planning.job import Job, Planned, Questions
from stereoset_scoring.planning.lengths import Limits, fitted
from stereoset_scoring.planning.plan import make_job
from stereoset_scoring.planning.portions import Portion
from stereoset_scoring.planning.probes import telling
from stereoset_scoring.planning.rows import Recipe, Values
from stereoset_scoring.planning.units import Unit
from stereoset_scoring.processes import garbage
from stereoset_scoring.questions.examples import Example, read_example
from stereoset_scoring.questions.tokens import Texts
from stereoset_scoring.reading import score_everywhere, score_here
from stereoset_scoring.refusal import MissingAttribute, MissingHead, Refusal
from stereoset_scoring.roles import Engine, Head, Rows, Source

if TYPE_CHECKING:  # they import torch, which takes seconds
    from stereoset_scoring.checkpoints.opening import Loading
    from stereoset_scoring.checkpoints.placement import Placement
    from stereoset_scoring.served.server import Server

# Padded tokens in one forward pass: enough to keep a device busy, little enough for any memory.
MAX_TOKENS = {"cuda": 16384}
MAX_TOKENS_ELSEWHERE = 2048
MAX_TOKENS_OF_NARROW = 4096  # likewise: of a model whose passes take hardly longer than to call them
NARROW = 512  # the hidden size up to which that is so
AT_ONCE = 1024  # examples that are tokenized together: enough for speed, few enough for any memory
_OF_A_FILE = ("_name_or_path", "_commit_hash", "transformers_version", "torch_dtype", "dtype")  # and of no question


class Scorer:
    """Scores options with one checkpoint.

    Args:
        source: a Checkpoint, a ModelInMemory or a ServedModel.
        method: a method's name for every task; a mapping of task to name; None for the defaults.
        preset: the name of a bundle of options that reproduces somebody's released code.
        options: the methods' options by name.
        max_tokens: how many tokens, padding included, one forward pass may hold; None for the default.

    Raises:
        Refusal: if method, preset or options are unknown to the source's family, or max_tokens is no number of
            tokens.
    """

    def __init__(
        self,
        source: Source,
        method: str | Mapping[str, str] | None = None,
        preset: str | None = None,
        options: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ):
        self.source, self.preset, self.options = source, preset, options or {}
        self.max_tokens = self._tokens_at_once() if max_tokens is None else max_tokens
        self._method = method
        self._heads: dict[str, Head] = {}
        self._known_limits: dict[str, Limits] = {}
        self._refusals: dict[str, Refusal] = {}  # why the source gives no such head; asked once, for it takes a loading
        if self.max_tokens < 1:
            raise Refusal(f"max_tokens is {self.max_tokens}: give a number of tokens, such as 2048.")
        if preset is not None:
            preset_named(preset)
        check_names(source.family, method)
        check_options(source.family, self.options)

    @property
    def width(self) -> int | None:
        """The size of the model's hidden states; None where that is not known here."""
        config = self.source.config
        width = None if config is None else getattr(config.get_text_config(), "hidden_size", None)
        return width if isinstance(width, int) else None

    def _tokens_at_once(self) -> int:
        """How many tokens, padding included, one forward pass may hold where nobody says."""
        device = str(self.source.device).partition(":")[0]
        narrow = self.width is not None and self.width <= NARROW
        return MAX_TOKENS.get(device, MAX_TOKENS_OF_NARROW if narrow else MAX_TOKENS_ELSEWHERE)

    def method(self, task: str) -> Method:
        """The method that scores a task: the one that was asked for, or the first whose head the source holds.

        A preset stands for one method, whose head may be lacking.

        Raises:
            Refusal: if there is none for this kind of model, or the source holds no head for any.
        """
        family, trained, name = self.source.family, self.source.trained, self._asked(task)
        if family == "next_sentence" and task != "intersentence":
            raise Refusal(
                f"{self.source.name} is a trained next-sentence head without a language model, and has no method for "
                f"{task}: score intersentence alone, or give a language model and this as its next_sentence_head."
            )
        if trained is not None and task == "intersentence" and name in (None, "next_sentence"):
            return choose_method(family, task, "next_sentence", self.preset, {**trained.options, **self.options})
        if name is None and self.preset is None:
            name = self._first_held(task)
        return choose_method(family, task, name, self.preset, self.options, self.source.tokenizer)

    def fallback(self, task: str) -> str | None:
        """Why a task is not scored by its usual default, in words; None where it is, or where another was asked for."""
        if self._is_asked_for(task) or self.preset is not None:
            return None
        heads = heads_of(self.source.family, task, self.source.tokenizer)
        chosen, usual = self.method(task).name, next(iter(heads), None)
        if usual is None or chosen == usual:
            return None
        return f"{self.source.name} holds no {heads[usual].replace('_', '-')} head"

    def unanswerable(self, data: Mapping[str, Rows]) -> dict[str, str]:
        """The data sets of which no row can be scored, for want of a method, a head or a token: {name: the reason}.

        Args:
            data: {name: rows}, each of one task.

        Raises:
            Refusal: if those are all data sets, or the method or the head that fails was asked for.
        """
        refused = {}
        for name, rows in data.items():
            reason = self._why_not(rows)
            if reason is None:
                continue
            if self._is_asked_for(read_example(rows[0]).task):
                raise Refusal(reason)
            refused[name] = reason
        if refused and len(refused) == len(data):
            raise Refusal(next(iter(refused.values())))
        return refused

    def _asked(self, task: str) -> str | None:
        """The name of the method that was asked for; None where that is left to the defaults."""
        return self._method.get(task) if isinstance(self._method, Mapping) else self._method

    def _is_asked_for(self, task: str) -> bool:
        """Whether it was said how a task shall be scored: by a method, or a trained head, of the task's own."""
        if (self.source.family, task) not in METHODS:
            return False
        return self._asked(task) is not None or (task == "intersentence" and self.source.trained is not None)

    def _why_not(self, rows: Rows) -> str | None:
        """Why none of some rows can be scored, in words; None where one can."""
        first = None
        for row in rows:
            reason = self._refused(row)
            if reason is None:
                return None
            first = first or reason
        return first

    def _refused(self, row: Mapping[str, Any]) -> str | None:
        """Why a row cannot be scored, in words; None where it can."""
        try:
            self._recipes([row])
        except Refusal as reason:
            return str(reason)
        return None

    def _first_held(self, task: str) -> str | None:
        """The name of the first method of a task whose head the source holds; None where there is nothing to choose.

        Raises:
            MissingHead: if it holds none of the heads; then it is said of the family's own.
            Refusal: if a head is there and cannot be loaded.
        """
        heads = heads_of(self.source.family, task, self.source.tokenizer)
        if len(set(heads.values())) < 2:
            return None
        for name, head in heads.items():
            if self._holds(head):
                return name
        self._head(self.source.family)
        return None

    def _holds(self, head: str) -> bool:
        """Whether the source holds a head.

        Raises:
            Refusal: if that cannot be told, or the head not be loaded.
        """
        try:
            self._head(head)
        except MissingHead:
            return False
        return True

    def _head(self, name: str) -> Head:
        """A head of the source, which is asked for it once, whatever it answers.

        Raises:
            MissingHead, Refusal: as the source.
        """
        if name not in self._heads and name not in self._refusals:
            try:
                self._heads[name] = self.source.head(name)
            except Refusal as refusal:
                # Without what it was raised in and for, which would hold a model that nobody uses.
                self._refusals[name] = type(refusal)(str(refusal))
        if name in self._refusals:
            raise self._refusals[name].with_traceback(None)
        return self._heads[name]

    def score(self, dataset: Rows, progress: bool = False, everywhere: bool = False) -> list[list[float]]:
        """Scores of every option, aligned with the rows.

        Args:
            dataset: rows with id, context and sentences{id, sentence}: a Dataset or a list of mappings, in
                any layout that `read_example` reads.
            progress: whether to show a progress bar.
            everywhere: whether all processes of a training (DistributedDataParallel, accelerate, fully_shard) share
                the work; each of them has to call this with the same rows, and gets all scores. By default, this
                process computes alone.

        Returns:
            scores[i][j] of option j of row i: the natural logarithm of the method's quantity; higher is
            preferred.

        Raises:
            Refusal: if a row lacks a field, a task has no method for this kind of model, the checkpoint
                lacks a head, or what is scored is longer than the model.
            Lost: if another process fails.
        """
        if everywhere:
            return score_everywhere(self, self.plan_everywhere(dataset), progress)
        return score_here(self, self.plan(dataset), progress)

    def plan_everywhere(self, dataset: Rows) -> Job:
        """As `plan`, on all processes of a training at once: where it fails on one, it fails on all.

        Raises:
            Refusal: as `score`.
            Lost: if another process fails.
        """
        from stereoset_scoring.processes.peers import Peers  # here, for it imports torch, which takes seconds

        return Peers().together(lambda: self.plan(dataset))

    def asks(self, data: Mapping[str, Rows]) -> tuple[Any, ...] | None:
        """All that the questions to this model depend on, to be compared with another's; None where it cannot be told.

        Args:
            data: {name: rows}, each of one task.
        """
        hub = self.source.tokenizer.hub
        if self.source.config is None or not getattr(hub, "is_fast", False):
            return None
        config = {name: value for name, value in self.source.config.to_dict().items() if name not in _OF_A_FILE}
        methods = [self.method(read_example(rows[0]).task) for rows in data.values()]
        words = type(hub), hub.backend_tokenizer.to_str(), hub.special_tokens_map, config
        return self.max_tokens, tuple(methods), sha256(repr(words).encode()).hexdigest()

    def plan(self, dataset: Rows) -> Job:
        """The Job that scores a data set: what is read, in which batches.

        Args:
            dataset: as in `score`.

        Raises:
            Refusal: as `score`.
        """
        with garbage.kept():
            return self._job_of(self._recipes(dataset), dataset)

    def _job_of(self, recipes: list[list[Recipe]], dataset: Rows) -> Job:
        """The Job of the recipes of some rows."""
        rows = [row for of_example in recipes for recipe in of_example for row in recipe.rows]
        largest = self.source.tokenizer.largest_id
        check_fit(rows, lambda head: self._head(head).engine.model, self.source.name, largest)
        self._try_out(recipes)
        heads = dict.fromkeys(row.head for row in rows)
        if not all(self._head(head).engine.padding_is_inert for head in heads):
            recipes = [list(map(self._as_long_as_it_matters, of_example)) for of_example in recipes]
        ids = tuple(str(row["id"]) for row in dataset)
        return make_job(recipes, self.max_tokens, lambda head: self._head(head).engine.shares_prefixes, ids)

    def _as_long_as_it_matters(self, recipe: Recipe) -> Recipe:
        """A recipe with whole rows, if the outputs of the model that it asks depend on how long a text is."""
        if not any(row.following and not self._head(row.head).engine.padding_is_inert for row in recipe.rows):
            return recipe
        limits = [self._head(row.head).longest_input or math.inf for row in recipe.rows]
        rows = zip(recipe.rows, limits, strict=True)
        return replace(recipe, rows=tuple(row.whole if len(row.whole.ids) <= most else row for row, most in rows))

    def _read_ahead(self, examples: Iterable[Example], method: Callable[[str], Method]) -> None:
        """Tokenize what some examples ask, and the sentences of options, where it is counted what is unknown of them.

        Args:
            examples: the examples.
            method: gives the method that scores a task.
        """
        tokenizer = self.source.tokenizer
        texts: list[Texts] = []
        for example in examples:
            with suppress(Refusal):
                texts.append(method(example.task).texts(example))
                if not tokenizer.knows_every_text:
                    texts.append(Texts(bare=example.sentences))
        tokenizer.read_ahead(texts)

    def _try_out(self, recipes: Sequence[Sequence[Recipe]]) -> None:
        """Let the engines of all heads try what they promise, on the rows of each example."""
        groups = defaultdict(list)
        for of_example in recipes:
            by_head = defaultdict(list)
            for recipe in of_example:
                for row in recipe.rows:
                    by_head[row.head].append(row)
            for head, rows in by_head.items():
                groups[head].append(rows)
        with self.evaluating(groups):
            for head, of_head in groups.items():
                self._head(head).engine.try_out(of_head)

    def with_preset(self, preset: str | None) -> "Scorer":
        """A scorer of the same checkpoint that differs in its preset alone; the weights are loaded once.

        Raises:
            Refusal: if there is no such preset.
        """
        if preset is not None:
            preset_named(preset)
        other = copy(self)
        other.preset = preset
        return other

    def try_out(self, data: Mapping[str, Rows]) -> dict[str, Job]:
        """Let the heads try what they promise on a few examples of each data set, the longest among them.

        What they show does not depend on how the rest is planned, so it is the same on every process.

        Args:
            data: {name: rows}, each of one task.

        Returns:
            {name: the Job of those examples}.

        Raises:
            Refusal: if a head is not what its kind promises.
        """
        return {name: self._try_out_on(rows) for name, rows in data.items()}

    def _try_out_on(self, rows: Rows) -> Job:
        some = [rows[i] for i in telling(rows)]
        job, _ = self._planned(some, self._questions(some, leave_out=True))
        return job if job.recipes else self._planned(rows, self._questions(rows, leave_out=True)).job

    @property
    def computes_elsewhere(self) -> bool:
        """Whether this process's own cores are idle while the model computes: it is on a GPU, or behind a server."""
        return str(self.source.device).partition(":")[0] != "cpu"

    def questions(self, portion: Portion, rows: Sequence[Mapping[str, Any]], leave_out: bool = False) -> Questions:
        """What some rows of a data set ask, and which of them are left out; the model is not asked.

        Those are always left out of which it cannot be told what stands at BLANK, where the method asks that: no mend
        is asked of anybody, for they are so in the published data.

        Args:
            portion, rows, leave_out: as `plan_part`.

        Raises:
            Refusal: if a row cannot be scored, and is not left out.
        """
        return self._questions(rows, leave_out)

    def plan_part(
        self,
        portion: Portion,
        rows: Sequence[Mapping[str, Any]],
        leave_out: bool = False,
        questions: Questions | None = None,
    ) -> Planned:
        """What is read of some rows of a data set, and which of them are left out.

        Args:
            portion: which rows they are; any will do, for none depends on the others.
            rows: they themselves.
            leave_out: whether all rows are left out that cannot be scored for what they hold.
            questions: theirs, of this scorer or of one that `asks` the same; None to find them out.

        Raises:
            Refusal: as `questions`.
        """
        return self._planned(rows, self._questions(rows, leave_out) if questions is None else questions)

    def _planned(self, rows: Rows, questions: Questions) -> Planned:
        """What is read of rows that ask so."""
        with garbage.kept():
            kept = [row for i, row in enumerate(rows) if i not in questions.refused]
            return Planned(self._job_of(questions.recipes, kept), questions.refused)

    def _questions(self, rows: Rows, leave_out: bool) -> Questions:
        """What rows of one task or of several ask; see `questions`."""
        recipes: list[list[Recipe]] = []
        refused: dict[int, str] = {}
        with garbage.kept():
            for i, answer in enumerate(self._recipes_or_refusals(rows)):
                if not isinstance(answer, Refusal):
                    recipes.append(answer)
                elif leave_out or isinstance(answer, MissingAttribute):
                    refused[i] = str(answer)
                else:
                    raise answer
        return Questions(recipes, refused)

    def _recipes_or_refusals(self, rows: Rows) -> Iterator[list[Recipe] | Refusal]:
        """Of each row, the recipes of its options, such that the model can read them; or why there are none."""
        method = cache(self.method)
        unread = map(_example_or_refusal, rows)
        while examples := list(islice(unread, AT_ONCE)):
            self._read_ahead((one for one in examples if not isinstance(one, Refusal)), method)
            for example in examples:
                try:
                    yield example if isinstance(example, Refusal) else self._recipes_of(example, method(example.task))
                except Refusal as reason:
                    yield reason

    def plan_all(self, data: Mapping[str, Rows]) -> dict[str, Job]:
        """The Jobs of several data sets: {name: Job} of {name: rows}; see `plan`."""
        return {name: self.plan(rows) for name, rows in data.items()}

    @contextmanager
    def as_tried(self) -> Iterator[None]:
        """Within, what the heads show on rows beyond those that they were tried on counts; afterwards no more.

        So what comes of some rows does not depend on which others the same process has read before.
        """
        engines = [head.engine for head in self._heads.values()]
        before = list(map(_shown, engines))
        try:
            yield
        finally:
            for engine, shown in zip(engines, before, strict=True):
                vars(engine).update(shown)

    def log_probs(self, units: Sequence[Unit]) -> Values:
        """ln P of the reads of the rows of a batch of units, which ask one head: a list for each row, in order."""
        return self._head(units[0].rows[0].head).engine.log_probs(units)

    def is_sharded(self, heads: Iterable[str]) -> bool:
        """Whether a model of some heads lies in parts on several processes, which then make its every pass together."""
        return any(self._head(head).engine.is_sharded for head in heads)

    @property
    def costs(self) -> dict[str, int]:
        """What was asked of servers so far, by this process: {"requests": …, "tokens": …}, or nothing."""
        return {name: count for head in self._heads.values() for name, count in head.engine.costs.items()}

    @contextmanager
    def evaluating(self, heads: Iterable[str]) -> Iterator[None]:
        """The models of some heads in evaluation mode, and as fast as they go; afterwards as they were."""
        import torch  # here, for it takes seconds

        from stereoset_scoring.engines.fused import fused
        from stereoset_scoring.engines.sharded import resharded

        models = [model for head in heads if (model := self._head(head).engine.model) is not None]
        gpus = {model.device for model in models if model.device.type == "cuda"}
        modes = [(module, module.training) for model in models for module in model.modules()]
        try:
            with kept_heap(), ExitStack() as stack:
                stack.enter_context(torch.random.fork_rng(gpus))  # some models draw numbers in any mode
                for model in models:
                    model.eval()
                    stack.enter_context(fused(model))
                    stack.enter_context(resharded(model))
                yield
        finally:
            torch.clear_autocast_cache()  # weights that were cast here would pass no gradient on to the caller's own
            for module, training in modes:
                module.training = training

    def _recipes(self, rows: Rows) -> list[list[Recipe]]:
        """recipes[i][j] of option j of row i.

        Raises:
            Refusal: if a row cannot be scored.
        """
        recipes = []
        for answer in self._recipes_or_refusals(rows):
            if isinstance(answer, Refusal):
                raise answer
            recipes.append(answer)
        return recipes

    def _recipes_of(self, example: Example, method: Method) -> list[Recipe]:
        return fitted(example, method.recipes(example, self.source.tokenizer), self.max_tokens, self._limits)

    def _limits(self, head: str) -> Limits:
        """How much the model of a head reads at most; looked up once."""
        if head not in self._known_limits:
            loaded = self._head(head)
            self._known_limits[head] = Limits(self.source.name, loaded.longest_input, loaded.longest_decoder)
        return self._known_limits[head]


def _example_or_refusal(row: Mapping[str, Any]) -> Example | Refusal:
    """A row as an Example, or why it is none."""
    try:
        return read_example(row)
    except Refusal as reason:
        return reason


def _shown(engine: Engine) -> dict[str, Any]:
    """What trials have shown of an engine's model."""
    return {name: getattr(engine, name) for name in engine.shown}


def load_scorer(
    name: str | Path | None = None,
    *,
    model: Any = None,
    tokenizer: Any = None,
    method: str | Mapping[str, str] | None = None,
    preset: str | None = None,
    device: Any = None,
    dtype: Any = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    max_tokens: int | None = None,
    next_sentence_head: str | Path | None = None,
    next_sentence_pooling: str | None = None,
    attention: str | None = None,
    compile: bool = False,
    tf32: bool = False,
    device_map: str | Mapping[str, Any] | None = None,
    gpus_per_model: int | None = None,
    quantization_config: Any = None,
    server: "str | Server | None" = None,
    **options: Any,
) -> Scorer:
    """A Scorer for a checkpoint, or for a model in memory.

    Args:
        name: hub id or folder, of a model or of an adapter of PEFT; leave it out to give `model` and `tokenizer`.
        model: a transformers model, maybe wrapped, with an adapter or in training; scored where it is and as it is.
        tokenizer: that model's hub tokenizer, or the processor that holds it; of a served model, also hub id or folder.
        method: the name of a method, or a mapping of task to name; None for the defaults.
        preset: "stereoset", "multilingual", "bias-bench" or "crows-pairs": the options of somebody's released code.
        device: where the checkpoint goes; None for the first GPU, or the CPU where there is none.
        dtype: "float32", "bfloat16", "float16" or "float64"; None for the checkpoint's own.
        revision: branch, tag or commit on the hub.
        trust_remote_code: whether code that comes with the checkpoint may run.
        max_tokens: how many tokens, padding included, one forward pass may hold.
        next_sentence_head: a trained next-sentence head, which then scores the intersentence task: a folder of
            scripts/train_next_sentence.py, or a state dict of the released code (.pth or .safetensors). The core
            model's weights come from there too.
        next_sentence_pooling: what that head reads, where its files do not say so: "pooler", "first", "last" or
            "mean"; None for what the released code reads.
        attention: "eager", "sdpa", "flash_attention_2" or another that transformers knows; None for its own choice.
        compile: whether the model, its heads left out, is compiled; pays off on large data alone.
        tf32: whether float32 matrices are multiplied in TensorFloat-32 where a GPU can; holds for the whole process.
        device_map: "auto" to spread a model over all devices of this machine, or {part: device}; instead of a device.
        gpus_per_model: how many GPUs each process of `accelerate launch` spreads its model over.
        quantization_config: how weights are quantized as they are loaded: what transformers takes, or it as a mapping.
        server: the address of a server that serves the model under its name, such as "http://localhost:8000/v1", or
            a Server, which also says how many requests are under way at once; the key is OPENAI_API_KEY's.
        options: options of the methods, which come before the preset's.

    Raises:
        Refusal: if neither or both of name and model are given, or what they name cannot be scored.
        OSError: if there is no such checkpoint within reach, or no such server.

    Examples:
        >>> scorer = load_scorer("bert-base-cased")  # doctest: +SKIP
        >>> scores = scorer.score(dataset)  # doctest: +SKIP
    """
    # Here, for importing them takes seconds and reading what a scorer is should not.
    import torch

    from stereoset_scoring.checkpoints.checkpoint import Checkpoint
    from stereoset_scoring.checkpoints.in_memory import ModelInMemory
    from stereoset_scoring.checkpoints.opening import Loading
    from stereoset_scoring.checkpoints.placement import Placement

    loading = Loading(dtype, revision, trust_remote_code, attention, compile)
    placement = Placement(device, device_map, gpus_per_model, quantization_config)
    source: Source
    if server is not None:
        _check_served(name, model, loading, placement, next_sentence_head)
        source = _served(str(name), server, tokenizer, loading)
    elif name is not None and model is None and tokenizer is None:
        source = Checkpoint(
            name,
            loading,
            placement,
            next_sentence_head=next_sentence_head,
            next_sentence_pooling=next_sentence_pooling,
        )
    elif name is None and model is not None and tokenizer is not None:
        _check_in_memory(loading, placement, next_sentence_head)
        source = ModelInMemory(model, tokenizer)
    else:
        raise Refusal("Give load_scorer either the name of a checkpoint, or a model and its tokenizer.")
    if tf32:
        torch.set_float32_matmul_precision("high")
    return Scorer(source, method, preset, options, max_tokens)


def _served(name: str, server: "str | Server", tokenizer: Any, loading: "Loading") -> Source:
    """The source of a served model."""
    from stereoset_scoring.served.model import ServedModel
    from stereoset_scoring.served.server import Server

    where = Server(server) if isinstance(server, str) else server
    return ServedModel(name, where, tokenizer, loading.revision, loading.trust_remote_code)


def _check_served(
    name: object, model: object, loading: "Loading", placement: "Placement", next_sentence_head: object
) -> None:
    """Refuse what a model that is served elsewhere can no longer be given."""
    if name is None or model is not None:
        raise Refusal("Give load_scorer, with a server, the name of a model that it serves, and no model.")
    spread = placement.device_map is not None or placement.gpus_per_model is not None or placement.is_quantized
    prepared = loading.compile or loading.attention is not None or loading.dtype not in (None, "auto")
    if spread or prepared or next_sentence_head is not None:
        raise Refusal("A served model is computed as its server was started: say there how, and nothing of it here.")


def _check_in_memory(loading: "Loading", placement: "Placement", next_sentence_head: str | Path | None) -> None:
    """Refuse what a model that is loaded and placed already can no longer be given."""
    if next_sentence_head is not None:
        raise Refusal("A model in memory takes no next_sentence_head: give load_scorer the checkpoint's name.")
    spread = placement.device_map is not None or placement.gpus_per_model is not None
    if loading.compile or loading.attention is not None or spread or placement.is_quantized:
        raise Refusal("A model in memory is scored where it is and as it is: place and prepare it beforehand.")
