"""The passage that XLNet reads before a short text."""

from functools import cache


@cache
def xlnet_passage() -> str:
    """The text that transformers ships for this purpose, without its last two markers, as in the released code."""
    from transformers import TextGenerationPipeline

    return str(TextGenerationPipeline.XL_PREFIX).replace("</s> <eos>", "")
