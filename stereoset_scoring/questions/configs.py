"""The names of the data set's configs: a task, followed by its language where that is not English.

The one place that lists tasks and languages and takes such names apart. (The package of the data set, which is
published alone, lists its own; a test holds the two together.)
"""

ENGLISH = "en"
CONTEXT_TASKS = ("intrasentence", "intersentence")
STEREOSET = (ENGLISH, "de", "es", "fr", "pt", "tr")  # the languages of both
GENDER_PAIRS = "crows_pairs_gender"  # whose names say their language always
# The pair tasks, in each of their languages.
PAIR_LANGUAGES = {
    "crows_pairs": (ENGLISH, "fr", "nl"),
    "crows_pairs_en_revised": (ENGLISH,),
    GENDER_PAIRS: ("ar", "de", ENGLISH, "fi", "fr", "id", "ko", "th", "vi", "zh"),
    "intrasentence_pairs": (ENGLISH,),
}
LANGUAGES_OF = {**dict.fromkeys(CONTEXT_TASKS, STEREOSET), **PAIR_LANGUAGES}
PAIR_TASKS = tuple(PAIR_LANGUAGES)
TASKS = tuple(LANGUAGES_OF)
LANGUAGES = (ENGLISH, *sorted({language for some in LANGUAGES_OF.values() for language in some} - {ENGLISH}))
PAIRS = "pairs"  # what methods call the pair tasks


def config_name(task: str, language: str = ENGLISH) -> str:
    """The name of the config that holds a task in a language.

    >>> config_name("intersentence", "tr"), config_name("crows_pairs_gender", "en")
    ('intersentence_tr', 'crows_pairs_gender_en')
    """
    return task if language == ENGLISH and task != GENDER_PAIRS else f"{task}_{language}"


def split_config(config: str) -> tuple[str, str]:
    """(task, language) of a config's name; what names no language is in English.

    >>> split_config("intersentence_tr"), split_config("crows_pairs_en_revised")
    (('intersentence', 'tr'), ('crows_pairs_en_revised', 'en'))
    """
    task, _, language = config.rpartition("_")
    has_language = task in CONTEXT_TASKS or (task in PAIR_TASKS and len(language) == 2)  # also in one's own language
    return (task, language) if has_language and config not in PAIR_TASKS else (config, ENGLISH)


def asked_as(config: str) -> str:
    """What methods call the task of a config: "intrasentence", "intersentence" or "pairs".

    >>> asked_as("crows_pairs_gender_zh")
    'pairs'
    """
    task, _ = split_config(config)
    return PAIRS if task in PAIR_TASKS else task
