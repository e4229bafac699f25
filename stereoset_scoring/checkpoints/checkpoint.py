"""A checkpoint of the hub or of a folder, as a source of heads."""

from stereoset_scoring.checkpoints.adapters import find_adapter
from stereoset_scoring.checkpoints.families import family_of, knows
from stereoset_scoring.checkpoints.heads import Head, how_to_train, make_engine, without_adapter, words
from stereoset_scoring.checkpoints.next_sentence_head import NextSentenceModel, find_trained_head
from stereoset_scoring.checkpoints.opening import open_weights
from stereoset_scoring.checkpoints.placement import default_device, spread
from stereoset_scoring.checkpoints.precision import cast, dtype_named, suit
from stereoset_scoring.checkpoints.repository import Repository
from stereoset_scoring.questions.tokenizer_files import load_tokenizer
from stereoset_scoring.refusal import Refusal


class Checkpoint:
    """A checkpoint of the hub or of a folder; its heads are loaded when they are first asked.

    Args:
        name: hub id or folder.
        revision: branch, tag or commit.
        dtype: a torch dtype or its name; "auto" for the checkpoint's own.
        device: where the model goes; None for this process's own GPU, or the CPU where there is none.
        trust_remote_code: whether code that comes with the checkpoint may run.
        next_sentence_head: path of a trained next-sentence head, see `find_trained_head`.
        next_sentence_pooling: what that head reads, where its files do not say so.
        attention: the implementation of attention, as transformers calls it; None for transformers' own choice.
        compile: whether the model is compiled, its heads left out.
        device_map: "auto" to spread the model over all devices, or {part: device}; instead of a device.
        gpus_per_model: how many of its machine's GPUs each process spreads its model over.
        quantization_config: how the weights are quantized as they are loaded, as transformers takes it.

    Attributes:
        trained: how the next-sentence head was trained that was given or that the checkpoint is: a HeadSpec; None
            where there is none.
        commit: the hub's commit that the files come from; None for a folder.
        base: the hub id or folder of the model that this is an adapter of; None for a whole model.

    Raises:
        Refusal: if it is a kind of model that has no methods here, or shall go to two places.
        OSError: if there is no such checkpoint within reach.
    """

    def __init__(
        self,
        name,
        revision=None,
        dtype="auto",
        device=None,
        trust_remote_code=False,
        next_sentence_head=None,
        next_sentence_pooling=None,
        *,
        attention=None,
        compile=False,
        device_map=None,
        gpus_per_model=None,
        quantization_config=None,
    ):
        own = Repository(name, revision, trust_remote_code)
        self.name, self.revision, self.commit = own.name, revision, own.commit
        self.dtype, self._attention, self._compile = dtype_named(dtype), attention, compile
        self._spread = spread(device, device_map, gpus_per_model)
        self._quantization = {} if quantization_config is None else {"quantization_config": quantization_config}
        self.device = default_device() if device is None else device
        self._adapter = find_adapter(own)
        self._base = own if self._adapter is None else self._adapter.base()
        self.base = None if self._adapter is None else self._base.name
        self.config = self._base.config
        self._trained_head = find_trained_head(self.name, next_sentence_head, next_sentence_pooling, revision)
        self.trained = self._trained_head and self._trained_head.spec
        self.next_sentence_head = self._trained_head and self._trained_head.path
        self.family = self._family(alone=next_sentence_head is None)
        if self._adapter is not None:
            self._adapter.check(self.family)
        spoken = own if self._adapter is None or own.file("tokenizer_config.json") else self._base
        self.tokenizer = load_tokenizer(spoken.name, self.config, **spoken.where)
        self._heads = {}

    def _family(self, alone):
        """family_of the configuration; "next_sentence" where the trained head is all there is to ask."""
        if self.trained is None:
            return family_of(self.config)
        try:
            return "next_sentence" if alone else family_of(self.config)
        except Refusal:
            return "next_sentence"

    def head(self, kind):
        """The Head of a kind, loaded at the first call.

        Raises:
            Refusal: if the architecture has no such head, or the checkpoint lacks weights for it: the
                library would draw them at random.
        """
        if kind not in self._heads:
            self._heads[kind] = self._load(kind)
        return self._heads[kind]

    def _load(self, kind):
        if kind == "next_sentence" and self._trained_head is not None:
            return self._load_trained(kind)
        if not knows(kind, self.config) and not self._base.trust_remote_code:
            raise Refusal(
                f"A {self.config.model_type} model has no {words(kind)} head: choose another method or checkpoint"
                f"{how_to_train(kind)}."
            )
        how = {**self._spread, **self._quantization}
        if self._quantization and not self._spread:
            how["device_map"] = {"": self.device}  # quantized weights do not move afterwards
        if self._attention is not None:
            how["attn_implementation"] = self._attention
        model, report = open_weights(self._base, kind, self.dtype, how)
        asked = getattr(model.config, "dtype", None) if self.dtype == "auto" else self.dtype
        if not self._quantization and asked is not None:
            cast(model, asked)
        suit(model)
        if self._adapter is not None:
            model = self._adapter.put_on(model, "auto" if self._quantization else self.dtype)
        if "device_map" not in how:
            model = model.to(self.device)
        return self._head(kind, model, report["unexpected_keys"])

    def _load_trained(self, kind):
        head = self._trained_head
        if self._spread or self._quantization or self._adapter:
            raise Refusal(
                f"{head.path} is a trained next-sentence head, which is neither spread over devices nor quantized, and "
                "takes no adapter: load it on one device."
            )
        model, dropped = head.load(self.config, self.dtype, self._base.trust_remote_code, self._attention)
        return self._head(kind, model.to(self.device), dropped)

    def _head(self, kind, model, unexpected):
        if self._compile:
            for trunk in _trunks(without_adapter(model)):
                trunk.compile(dynamic=True)
        return Head(make_engine(kind, model.eval(), self.tokenizer), unexpected=unexpected)


def _trunks(model):
    """What is compiled of a model: all but the heads, which the engines look into."""
    if isinstance(model, NextSentenceModel):
        return [model.core_model]
    if model.config.is_encoder_decoder:
        return [model.get_encoder(), model.get_decoder()]
    if model.base_model is model:
        raise Refusal(f"A {type(model).__name__} has no part below its head to compile: leave compile out.")
    return [model.base_model]
