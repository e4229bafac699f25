"""From a server's address and a model's name to a head that can be asked, over the OpenAI completions protocol."""
