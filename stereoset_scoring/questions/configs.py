"""The names of the data set's configs: a task, followed by its language where that is not English.

The one place that lists tasks and languages and takes such names apart. (The package of the data set, which is
published alone, lists its own; a test holds the two together.)
"""

ENGLISH = "en"
LANGUAGES = (ENGLISH, "de", "es", "fr", "tr")
CONTEXT_TASKS = ("intrasentence", "intersentence")  # in every language
PAIR_TASKS = ("crows_pairs", "intrasentence_pairs")  # in English
TASKS = (*CONTEXT_TASKS, *PAIR_TASKS)
PAIRS = "pairs"  # what methods call the pair tasks


def config_name(task: str, language: str = ENGLISH) -> str:
    """The name of the config that holds a task in a language.

    >>> config_name("intersentence", "tr")
    'intersentence_tr'
    """
    return task if language == ENGLISH else f"{task}_{language}"


def split_config(config: str) -> tuple[str, str]:
    """(task, language) of a config's name; what names no language is in English.

    >>> split_config("intersentence_tr")
    ('intersentence', 'tr')
    """
    task, _, language = config.rpartition("_")
    return (task, language) if task in CONTEXT_TASKS and config not in PAIR_TASKS else (config, ENGLISH)


def asked_as(config: str) -> str:
    """What methods call the task of a config: "intrasentence", "intersentence" or "pairs".

    >>> asked_as("crows_pairs")
    'pairs'
    """
    task, _ = split_config(config)
    return PAIRS if task in PAIR_TASKS else task
