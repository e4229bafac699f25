"""From a name, a folder or a model in memory to a checkpoint whose heads can be asked."""

import hashlib
import inspect
from functools import cached_property

import torch
from accelerate.utils import align_module_device, extract_model_from_parallel
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForNextSentencePrediction,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES,
    MODEL_FOR_PRETRAINING_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
)
from transformers.utils.hub import cached_file, extract_commit_hash

from stereoset_scoring.engines.devices import gpus_of, input_device
from stereoset_scoring.engines.kinds import ENGINES
from stereoset_scoring.engines.next_sentence_head import NextSentenceModel, find_trained_head
from stereoset_scoring.engines.sharing import longest_side
from stereoset_scoring.modalities import check_reads_text
from stereoset_scoring.team import processes
from stereoset_scoring.tokenizer_files import load_tokenizer
from stereoset_scoring.tokens import Tokenizer

AUTO_CLASSES = {
    "masked": AutoModelForMaskedLM,
    "permutation": AutoModelForCausalLM,  # where transformers keeps XLNet
    "causal": AutoModelForCausalLM,
    "seq2seq": AutoModelForSeq2SeqLM,
    "next_sentence": AutoModelForNextSentencePrediction,
    "sentiment": AutoModelForSequenceClassification,
}
ARCHITECTURES = {
    "masked": MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "permutation": {"xlnet": MODEL_FOR_CAUSAL_LM_MAPPING_NAMES["xlnet"]},
    "causal": {kind: name for kind, name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items() if kind != "xlnet"},
    "seq2seq": MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    "next_sentence": MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES,
    "sentiment": {
        kind: name
        for kind, name in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES.items()
        if kind != "xlnet"  # it classifies at the last position, be it padding
    },
}


def family_of(config, architectures=None):
    """The kind of model that a configuration describes: "masked", "permutation", "causal", "seq2seq" or "sentiment".

    Asked of the architecture that the checkpoint was saved as, then of what its model type can be; never of
    the checkpoint's name.

    Args:
        config: a transformers configuration.
        architectures: names of classes, should they be known better than from the configuration.

    Raises:
        ValueError: if it is a kind that has no methods here.
    """
    kind, saved_as = config.model_type, architectures or config.architectures or []
    if ARCHITECTURES["sentiment"].get(kind) in saved_as:
        return "sentiment"
    remote = getattr(config, "auto_map", {})
    # Encoder-decoders first: some of them can also be opened as causal models, with half of their weights.
    if config.is_encoder_decoder:
        check_reads_text(config, saved_as, known=kind in ARCHITECTURES["seq2seq"] or bool(remote))
        return "seq2seq"
    for family in ("masked", "permutation", "causal"):
        if AUTO_CLASSES[family].__name__ in remote or ARCHITECTURES[family].get(kind) in saved_as:
            return family
    if kind in ARCHITECTURES["masked"] and not getattr(config, "is_decoder", False):
        return "masked"
    for family in ("permutation", "causal"):
        if kind in ARCHITECTURES[family]:
            return family
    raise ValueError(
        f"A {kind} checkpoint ({', '.join(saved_as) or 'no architecture named'}) has no language-model head: "
        "give a masked or a causal language model."
    )


class Head:
    """One loaded head of a checkpoint.

    Attributes:
        engine: its Engine.
        missing: names of weights that the head needs and the checkpoint lacks; always empty, since such a
            checkpoint is refused.
        unexpected: names of weights in the checkpoint that this head does not use.
    """

    def __init__(self, engine, missing=(), unexpected=()):
        self.engine = engine
        self.missing = tuple(sorted(missing))
        self.unexpected = tuple(sorted(unexpected))

    @cached_property
    def longest_input(self):
        """How many tokens the model reads at most; None where there is no limit."""
        return longest_input(self.engine.model)

    @cached_property
    def longest_decoder(self):
        """How many tokens the decoder reads at most, its start token included; None where there is no limit or none."""
        config = self.engine.model.config
        return longest_side(config, "decoder") if config.is_encoder_decoder else None

    @property
    def fingerprint(self):
        """sha256 over names, shapes, dtypes and bytes of the weights as they lie in memory now."""
        return fingerprint(self.engine.model)


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

    Raises:
        ValueError: if it is a kind of model that has no methods here, or shall go to two places.
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
        self.name, self.revision, self.dtype = str(name), revision, _dtype(dtype)
        self._attention, self._compile = attention, compile
        self._spread = _spread(device, device_map, gpus_per_model)
        self._quantization = {} if quantization_config is None else {"quantization_config": quantization_config}
        self.device = default_device() if device is None else device
        try:
            # The commit first, so that all files are of one state of the repository.
            self.commit = extract_commit_hash(cached_file(self.name, "config.json", revision=revision), None)
            self._where = {"revision": self.commit or revision, "trust_remote_code": trust_remote_code}
            self.config = AutoConfig.from_pretrained(self.name, **self._where)
        except OSError as error:
            raise OSError(
                f"{self.name} is neither a folder with a model nor within reach on the hub: check the name, or "
                f"download the model first ({str(error).splitlines()[0]})"
            ) from error
        self._trained_head = find_trained_head(self.name, next_sentence_head, next_sentence_pooling, revision)
        self.trained = self._trained_head and self._trained_head.spec
        self.next_sentence_head = self._trained_head and self._trained_head.path
        self.family = self._family(alone=next_sentence_head is None)
        self.tokenizer = load_tokenizer(self.name, self.config, **self._where)
        self._heads = {}

    def _family(self, alone):
        """family_of the configuration; "next_sentence" where the trained head is all there is to ask."""
        if self.trained is None:
            return family_of(self.config)
        try:
            return "next_sentence" if alone else family_of(self.config)
        except ValueError:
            return "next_sentence"

    def head(self, kind):
        """The Head of a kind, loaded at the first call.

        Raises:
            ValueError: if the architecture has no such head, or the checkpoint lacks weights for it: the
                library would draw them at random.
        """
        if kind not in self._heads:
            self._heads[kind] = self._load(kind)
        return self._heads[kind]

    def _load(self, kind):
        if kind == "next_sentence" and self._trained_head is not None:
            if self._spread or self._quantization:
                raise ValueError(
                    f"{self._trained_head.path} is a trained next-sentence head, which is neither spread over devices "
                    "nor quantized: load it on one device."
                )
            model, dropped = self._trained_head.load(
                self.config, self.dtype, self._where["trust_remote_code"], self._attention
            )
            return self._head(kind, model.to(self.device), dropped)
        if self.config.model_type not in ARCHITECTURES[kind] and not self._where["trust_remote_code"]:
            raise ValueError(
                f"A {self.config.model_type} model has no {_words(kind)} head: choose another method, or a "
                f"checkpoint of one of {', '.join(sorted(ARCHITECTURES[kind]))}{_how_to_train(kind)}."
            )
        how = {**self._spread, **self._quantization}
        if self._quantization and not self._spread:
            how["device_map"] = {"": self.device}  # quantized weights do not move afterwards
        if self._attention is not None:
            how["attn_implementation"] = self._attention
        try:
            model, report = AUTO_CLASSES[kind].from_pretrained(
                self.name, dtype=self.dtype, output_loading_info=True, **how, **self._where
            )
        except ImportError as error:
            raise ValueError(
                f"{self.name} cannot be loaded with {', '.join(how)}, for a library is missing: install it, or leave "
                f"the option out ({' '.join(str(error).split())})."
            ) from error
        lacking = sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"])
        if lacking:
            raise ValueError(
                f"{self.name} holds no {_words(kind)} head that fits ({len(lacking)} weights missing, first "
                f"{lacking[0]!r}), and a random one says nothing: choose another method or checkpoint"
                f"{_how_to_train(kind)}."
            )
        if not self._quantization and self.dtype != "auto":
            _cast(model, self.dtype)
        if "device_map" not in how:
            model = model.to(self.device)
        return self._head(kind, model, report["unexpected_keys"])

    def _head(self, kind, model, unexpected):
        if self._compile:
            for trunk in _trunks(model):
                trunk.compile(dynamic=True)
        return Head(_engine(kind, model.eval(), self.tokenizer), unexpected=unexpected)


class ModelInMemory:
    """A model that somebody holds, maybe wrapped, maybe in training, with its tokenizer.

    Args:
        model: a transformers model with a language-model head, or a wrapper around one.
        tokenizer: its hub tokenizer.

    Raises:
        ValueError: if it is a kind of model that has no methods here.
    """

    revision = commit = next_sentence_head = None

    def __init__(self, model, tokenizer):
        model = extract_model_from_parallel(model, keep_torch_compile=False)
        self.model, self.config = model, model.config
        self._classes = [one.__name__ for one in type(without_adapter(model)).__mro__]
        self.name = self.config.name_or_path or type(model).__name__
        self.tokenizer = Tokenizer(tokenizer, self.config)
        self.trained = model.spec if isinstance(model, NextSentenceModel) else None
        self.family = "next_sentence" if self.trained else family_of(self.config, self._classes)
        self._heads = {}

    @property
    def dtype(self):
        """The dtype of the weights."""
        return self.model.dtype

    @property
    def device(self):
        """Where the model's inputs go."""
        return input_device(self.model)

    def head(self, kind):
        """The Head of a kind.

        Raises:
            ValueError: if the model in memory does not have that head.
        """
        if kind not in self._heads:
            model_type = self.config.model_type
            wanted = {ARCHITECTURES[kind].get(model_type)}
            if kind == "next_sentence":
                wanted.add(NextSentenceModel.__name__)
            if kind in ("masked", "next_sentence") and model_type in ARCHITECTURES["next_sentence"]:
                wanted.add(MODEL_FOR_PRETRAINING_MAPPING_NAMES.get(model_type))  # one class with both heads
            if not wanted & set(self._classes):
                raise ValueError(
                    f"A {self._classes[0]} in memory has no {_words(kind)} head: choose another method, or give "
                    f"a {ARCHITECTURES[kind].get(model_type, 'model that has one')}."
                )
            self._heads[kind] = Head(_engine(kind, self.model, self.tokenizer))
        return self._heads[kind]


def without_adapter(model):
    """The transformers model inside an adapter of PEFT, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def longest_input(model):
    """How many tokens a model reads at most, special ones included; None where positions are not counted."""
    if model.config.is_encoder_decoder:
        longest = longest_side(model.config, "encoder")
    else:
        longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if not isinstance(longest, int) or longest <= 0:
        return None
    for name, module in model.named_modules():
        # RoBERTa and its kin number positions from the padding id on.
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return longest - module.padding_idx - 1
    return longest


def fingerprint(model):
    """sha256, as hex, over names, shapes, dtypes and bytes of a model's weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(_in_memory(model, name, tensor).detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def _in_memory(model, name, tensor):
    """A tensor of a model's state; fetched, where it is kept elsewhere until it is needed."""
    if tensor.device.type != "meta":
        return tensor
    part, _, own = name.rpartition(".")
    module = model.get_submodule(part)
    with align_module_device(module, torch.device("cpu")):
        return getattr(module, own).detach().clone()


def default_device():
    """This process's own GPU, or the CPU where there is none."""
    return processes().device


def _spread(device, device_map, gpus_per_model):
    """How from_pretrained is told to spread a model over devices; nothing where it shall not."""
    if device_map is None and gpus_per_model is None:
        return {}
    if device is not None:
        raise ValueError(f"A model goes to device {device} or is spread over several: leave one of them out.")
    if gpus_per_model is None:
        return {"device_map": device_map}
    if device_map not in (None, "auto"):
        raise ValueError("gpus_per_model chooses the devices itself: leave device_map out, or 'auto'.")
    gpus = gpus_of(processes().local_process_index, gpus_per_model, torch.cuda.device_count())
    return {"device_map": "auto", "max_memory": {gpu: torch.cuda.mem_get_info(gpu)[0] for gpu in gpus}}


def _cast(model, dtype):
    """All weights in one dtype, for some architectures keep parts in another than asked for; buffers never narrower.

    Those are computed, such as the frequencies of rotary positions, and half precision would spoil them.
    """
    for weight in model.parameters():
        if weight.is_floating_point() and weight.device.type != "meta":
            weight.data = weight.data.to(dtype)
    for buffer in model.buffers():
        if buffer.is_floating_point() and buffer.device.type != "meta":
            buffer.data = buffer.data.to(torch.promote_types(buffer.dtype, dtype))


def _trunks(model):
    """What is compiled of a model: all but the heads, which the engines look into."""
    if isinstance(model, NextSentenceModel):
        return [model.core_model]
    if model.config.is_encoder_decoder:
        return [model.get_encoder(), model.get_decoder()]
    if model.base_model is model:
        raise ValueError(f"A {type(model).__name__} has no part below its head to compile: leave compile out.")
    return [model.base_model]


def _engine(kind, model, tokenizer):
    pad = tokenizer.hub.pad_token_id
    accepts = inspect.signature(without_adapter(model).forward).parameters
    return ENGINES[kind](model, 0 if pad is None else pad, accepts)


def _dtype(dtype):
    if dtype is None or dtype == "auto" or isinstance(dtype, torch.dtype):
        return dtype or "auto"
    found = getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ValueError(f"There is no dtype {dtype!r}: choose auto, float32, bfloat16, float16 or float64.")
    return found


def _how_to_train(kind):
    return ", or train one with scripts/train_next_sentence.py" if kind == "next_sentence" else ""


def _words(kind):
    return {"masked": "masked-language-model", "seq2seq": "encoder-decoder"}.get(kind, kind.replace("_", "-"))
