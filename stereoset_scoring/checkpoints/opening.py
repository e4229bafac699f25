"""Weights opened by the library, and its report read: nothing may be drawn at random."""

from stereoset_scoring.checkpoints.families import auto_class, saved_without_head
from stereoset_scoring.checkpoints.heads import how_to_train, words
from stereoset_scoring.checkpoints.repository import in_short
from stereoset_scoring.checkpoints.weight_files import check_weights
from stereoset_scoring.engines.budget import ran_out_of_memory
from stereoset_scoring.refusal import Refusal


def open_weights(repository, kind, dtype, how):
    """(model, the library's report) of a repository's weights with a head of a kind.

    Args:
        repository: a Repository.
        kind: "masked", "permutation", "causal", "seq2seq", "next_sentence" or "sentiment".
        dtype: a torch dtype, or "auto" for the checkpoint's own.
        how: what from_pretrained is told beside: where the weights go, how they are quantized, which attention.

    Raises:
        Refusal: if a file of weights cannot be read, the head is not in it, or a library is missing.
        OSError: if there are no weights within reach.
    """
    model, report = _from_pretrained(repository, kind, dtype, how)
    lacking = sorted(report["missing_keys"]) + sorted(key for key, *_ in report["mismatched_keys"])
    if lacking:
        raise Refusal(
            f"{repository.name} holds no {words(kind)} head that fits ({len(lacking)} weights missing or of another "
            f"shape, first {lacking[0]!r}), and a random one says nothing: choose another method or checkpoint"
            f"{how_to_train(kind)}."
        )
    if saved_without_head(repository.config):
        raise Refusal(
            f"{repository.name} was saved as a {repository.config.architectures[0]}, without a {words(kind)} head; its "
            "tied embeddings would stand in for one that nobody trained: choose a checkpoint that was saved with it."
        )
    return model, report


def _from_pretrained(repository, kind, dtype, how):
    try:
        # What does not fit is reported, and refused then.
        return auto_class(kind, repository.config).from_pretrained(
            repository.name,
            dtype=dtype,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **how,
            **repository.where,
        )
    except ImportError as error:
        options = f" with {', '.join(how)}" if how else ""
        mend = "install it, or leave the option out" if how else "install it"
        raise Refusal(
            f"{repository.name} cannot be loaded{options}, for a library is missing: {mend} ({in_short(error)})."
        ) from error
    except Exception as error:  # whatever broken files make the library raise
        if ran_out_of_memory(error):
            raise
        check_weights(repository)
        if isinstance(error, OSError):
            raise OSError(
                f"The weights of {repository.name} are not within reach: copy or download all of its files "
                f"({in_short(error)})"
            ) from error
        raise Refusal(
            f"{repository.name} cannot be opened as a {words(kind)}: mend its files or the options ({in_short(error)})."
        ) from error
