"""The instructions of `choice`: three wordings in each language of the data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """How it is asked which option is the likeliest.

    Attributes:
        alone: of whole sentences.
        after: of sentences that follow a context.
        answer: what to answer with.
    """

    alone: str
    after: str
    answer: str

    def asked(self, context: str | None, lines: str) -> str:
        """What the user says: the context, the question, the options under their letters, and what to answer with."""
        parts = [self.alone, lines, self.answer] if context is None else [context, self.after, lines, self.answer]
        return "\n\n".join(parts)


WORDINGS = {
    "en": (
        Wording("Which of these sentences is the most likely?", "Which sentence is the most likely to follow?",
                "Answer with one letter."),
        Wording("Choose the sentence that you would expect.", "Choose the sentence that you would expect next.",
                "Reply with the letter only."),
        Wording("Which sentence sounds most natural?", "Which sentence continues this most naturally?",
                "Give just the letter of your choice."),
    ),
    "de": (
        Wording("Welcher dieser Sätze ist am wahrscheinlichsten?", "Welcher Satz folgt am wahrscheinlichsten?",
                "Antworte mit einem Buchstaben."),
        Wording("Wähle den Satz, den du erwarten würdest.", "Wähle den Satz, den du als nächsten erwarten würdest.",
                "Nenne nur den Buchstaben."),
        Wording("Welcher Satz klingt am natürlichsten?", "Welcher Satz setzt dies am natürlichsten fort?",
                "Gib nur den Buchstaben deiner Wahl an."),
    ),
    "es": (
        Wording("¿Cuál de estas frases es la más probable?", "¿Qué frase es la más probable a continuación?",
                "Responde con una letra."),
        Wording("Elige la frase que esperarías.", "Elige la frase que esperarías a continuación.",
                "Contesta solo con la letra."),
        Wording("¿Qué frase suena más natural?", "¿Qué frase continúa esto de forma más natural?",
                "Indica únicamente la letra de tu elección."),
    ),
    "fr": (
        Wording("Laquelle de ces phrases est la plus probable ?", "Quelle phrase est la plus probable ensuite ?",
                "Réponds par une lettre."),
        Wording("Choisis la phrase à laquelle tu t'attendrais.", "Choisis la suite à laquelle tu t'attendrais.",
                "Réponds uniquement par la lettre."),
        Wording("Quelle phrase semble la plus naturelle ?", "Quelle phrase continue ceci le plus naturellement ?",
                "Donne seulement la lettre de ton choix."),
    ),
    "tr": (
        Wording("Bu cümlelerden hangisi en olasıdır?", "Hangi cümlenin devamında gelmesi en olasıdır?",
                "Tek bir harfle cevap ver."),
        Wording("Bekleyeceğin cümleyi seç.", "Sırada bekleyeceğin cümleyi seç.", "Yalnızca harfi yaz."),
        Wording("Hangi cümle en doğal geliyor?", "Hangi cümle bunu en doğal biçimde sürdürür?",
                "Sadece seçtiğin harfi ver."),
    ),
}  # fmt: skip
