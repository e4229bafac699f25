"""Training next-sentence heads, as Nadeem et al. 2021 (A.4) and Öztürk et al. 2023 (§5.2) did."""
