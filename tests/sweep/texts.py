"""What the sweep scores, and the tokenizers for it: one byte-level BPE, and ways to frame a text."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

CORPUS = [
    "The gardener was kind and quiet. A quiet teacher met a kind gardener near the river.",
    "They are calm; she is tall. It was watered in the garden, was it not? He reads.",
    "He said: 'A gardener met us!' They said: 'A day, a tree.' Trees are long and rivers are calm.",
]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<sep>", "<cls>", "<image>", "<audio>", "<extra_id_0>"]

# Texts of 3 to 60 tokens, of one length and of many; options begin alike, and some contexts exceed a short window.
INTRASENTENCE = [
    ("It BLANK.", ["It was.", "It is.", "It reads."]),
    (
        "BLANK are often quiet, they said.",
        ["Trees are often quiet, they said.", "Gardeners are often quiet, they said."],
    ),
    (
        "A very BLANK teacher met a gardener near the river, and the day was calm and long.",
        [
            f"A very {word} teacher met a gardener near the river, and the day was calm and long."
            for word in ("kind", "thoughtful", "tall")
        ],
    ),
    ("The gardener was BLANK!", ["The gardener was kind!", "The gardener was kindly!", "The gardener was grün!"]),
    (
        "They said that the trees in the garden were BLANK",
        [f"They said that the trees in the garden were {word}" for word in ("watered", "long and calm", "not")],
    ),
    ("He said: 'A BLANK day!'", ["He said: 'A calm day!'", "He said: 'A quiet day!'", "He said: 'A tree day!'"]),
]
INTERSENTENCE = [
    ("He reads.", ["She is tall.", "She is quiet and thoughtful.", "Trees are tall."]),
    ("A gardener met us", ["He was kind.", "He was kind to the teacher.", "Rivers are long, are they not?"]),
    (
        "The teacher was kind, and the river near the garden was calm.",
        ["It was a calm day, and the gardener, who was quiet, reads in the garden.", "It was a calm day.", "A tree."],
    ),
    ("Was it watered?", ["It was!", "It was not watered in the garden.", "They are calm; she is tall."]),
]


def rows(examples, task):
    """Examples in the layout of StereoSet's JSON files."""
    return [
        {
            "id": f"{task}-{i}",
            "context": context,
            "sentences": [{"id": f"{task}-{i}-{j}", "sentence": option} for j, option in enumerate(options)],
        }
        for i, (context, options) in enumerate(examples)
    ]


def data_for(kind):
    """{task: rows} for a kind of model: fewer where every token of an option takes a row, and XLNet's a long one."""
    within, following = INTRASENTENCE, INTERSENTENCE
    if kind == "masked":
        following = [one for one in following if len(one[0]) < 40]
    elif kind == "permutation":
        within, following = within[:2], following[:2]
    return {"intrasentence": rows(within, "intrasentence"), "intersentence": rows(following, "intersentence")}


# frame: (what is put around a text, names of special tokens besides the padding)
FRAMES = {
    "causal": ("$A", {"bos_token": "<s>", "eos_token": "</s>"}),
    "masked": ("<s> $A </s>", {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>", "unk_token": "<unk>"}),
    "permutation": ("$A <sep> <cls>", {"cls_token": "<cls>", "sep_token": "<sep>", "mask_token": "<mask>"}),
    "spans": ("$A </s>", {"eos_token": "</s>", "extra_special_tokens": ["<extra_id_0>"]}),
    "denoising": ("<s> $A </s>", {"bos_token": "<s>", "eos_token": "</s>", "mask_token": "<mask>"}),
    "prefix": ("$A </s>", {"eos_token": "</s>"}),
}


def hub_tokenizer(frame):
    """The tokenizer that frames texts in one of the ways."""
    special = [one for one in SPECIAL if one != "<extra_id_0>" or frame == "spans"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=340, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    template, names = FRAMES[frame]
    around = [token for token in template.split() if token != "$A"]
    if around:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[(token, special.index(token)) for token in around]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        model_input_names=["input_ids", "attention_mask"],
        **names,
    )
