"""The smallest configuration of any architecture: its own defaults, with every size made small and every kind of layer.

Nothing is known of single architectures but what PECULIAR lists: fields are found by introspection, and what they are
is told from their names.
"""

import inspect
from dataclasses import dataclass

from transformers import CONFIG_MAPPING, PretrainedConfig

POSITIONS = 128  # more than any row of the sweep has tokens


def named(table):
    """{field: value} of {value: fields, in words}."""
    return {name: value for value, names in table.items() for name in names.split()}


# A field's value in a tiny model, wherever its default is a number.
SIZES = named(
    {
        32: """hidden_size n_embd d_model emb_dim dim embed_dim embedding_size embedding_dim word_embed_proj_dim
            lru_width cross_attention_hidden_size hidden_size_global d_latents true_hidden_size pooler_hidden_size
            input_size prediction_head_size attention_hidden_size adapter_in_dim adapter_out_dim adapter_input_size
            out_hidden_size text_hidden_size audio_hidden_size vl_hidden_size out_dim connector_hidden_size
            qformer_hidden_size acoustic_hidden_size vision_output_dim projector_hidden_size projector_input_dim
            projector_output_dim output_dim alignment_intermediate_size output_channels downsample_hidden_size
            swa_q_lora_rank projector_intermediate_size adapter_hidden_size adapter_intermediate_size
            encoder_hidden_size""",
        48: """intermediate_size ffn_dim d_ff dff d_inner dim_ff hidden_dim feed_forward_size encoder_ffn_dim
            decoder_ffn_dim ffn_hidden_size n_inner moe_intermediate_size shared_expert_intermediate_size
            shared_experts_intermediate_size shared_intermediate_size dense_intermediate_size intermediate_size_mlp
            expert_ffn_hidden_size share_expert_dim moe_shared_expert_intermediate_size block_ff_dim mlp_hidden_size
            prefix_dense_intermediate_size moe_hidden_size moe_latent_size""",
        4: """num_attention_heads n_head n_heads num_heads attention_heads encoder_attention_heads index_n_heads
            decoder_attention_heads num_encoder_attention_heads num_decoder_attention_heads linear_num_heads
            num_sliding_attention_heads swa_num_attention_heads linear_num_value_heads num_self_attention_heads
            num_cross_attention_heads num_query_groups num_experts num_local_experts n_routed_experts
            moe_num_experts rotary_dim""",
        2: """num_key_value_heads num_kv_heads kv_n_heads swa_num_key_value_heads linear_num_key_heads
            swa_num_kv_heads num_global_key_value_heads indexer_kv_heads num_hidden_layers n_layer n_layers
            num_layers encoder_layers decoder_layers layers num_encoder_layers num_decoder_layers num_blocks depth
            num_layers_per_stack num_experts_per_tok num_experts_per_token moe_k moe_topk moe_top_k top_k_experts
            n_group num_expert_group num_mtp_layers hc_mult hc_count n_mamba_heads max_window_layers zero_expert_num""",
        8: """head_dim d_kv d_head dim_head kv_channels qk_nope_head_dim qk_rope_head_dim v_head_dim swa_head_dim
            swa_v_head_dim linear_head_dim linear_key_head_dim linear_value_head_dim index_head_dim indexer_head_dim
            global_head_dim attention_head_size mamba_d_head mamba_head_dim mamba_headdim attention_head_dim
            mamba_n_heads mamba_num_heads num_mel_bins patch_size""",
        16: """chunk_size mamba_chunk_size kv_lora_rank q_lora_rank o_lora_rank laurel_rank gated_norm_rank hc_lowrank
            qk_head_dim image_size hidden_size_per_layer_input mamba_d_state ssm_state_size state_size adapter_rank
            time_step_rank mamba_dt_rank embedding_rank ple_embed_dim router_hidden_size entity_emb_size
            input_embedding_size output_embedding_size intra_bottleneck_size projection_dim d_rel rel_extent
            pronunciation_embed_dim shape_embed_dim""",
        1: """n_shared_experts num_shared_experts moe_num_shared_experts topk_group mamba_n_groups mamba_ngroups
            n_groups first_k_dense_replace num_dense_layers""",
        0: "num_nextn_predict_layers num_kv_shared_layers moe_layer_start_index",
        64: "mamba_d_ssm",
        10: "entity_vocab_size pronunciation_vocab_size shape_vocab_size",
        POSITIONS: """max_position_embeddings n_positions n_ctx max_seq_len max_source_positions model_max_length
            max_target_positions max_encoder_position_embeddings max_decoder_position_embeddings context_length""",
    }
)
VOCABULARY = {"vocab_size", "src_vocab_size", "tgt_vocab_size", "vocab_size_per_layer_input", "decoder_vocab_size"}
# How far a position sees: asked for below and above the lengths of the rows.
SHORT, LONG = 8, 128
WINDOWS = {
    *["sliding_window", "attention_chunk_size", "window_size", "local_attention", "index_topk", "attention_window"],
    *["attention_window_size", "sliding_window_size", "keep_window_size", "local_attention_window_len", "local_radius"],
    *["original_max_position_embeddings", "index_local_blocks", "index_topk_blocks"],
}
IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "unk_token_id": 3, "mask_token_id": 4}
# Which layers are of another kind, where no list names them all: every second one.
EVERY = named(
    {
        2: """full_attention_interval attn_layer_period expert_layer_period layer_group_size moe_every_n_layers
            no_rope_layer_interval interleave_moe_layer_step sliding_window_pattern global_attn_every_n_layers
            decoder_sparse_step encoder_sparse_step cross_layer_interval""",
        1: "attn_layer_offset expert_layer_offset num_sparse_encoder_layers num_sparse_decoder_layers",
    }
)


@dataclass(frozen=True)
class Request:
    """What a tiny configuration shall be: how large its vocabulary is, and how far its windows see."""

    vocabulary: int
    window: int


def tiny_configuration(model_type, request):
    """The tiny configuration of a model type."""
    return CONFIG_MAPPING[model_type](**tiny_arguments(CONFIG_MAPPING[model_type](), request))


def tiny_arguments(default, request):
    """The arguments that make a default configuration tiny, those of the configurations in it included."""
    peculiar = PECULIAR.get(default.model_type, {})
    return {**shrunk(default, request), **(peculiar(request) if callable(peculiar) else peculiar)}


def shrunk(default, request):
    """The arguments that make a default configuration tiny."""
    kept, arguments = layers_kept(default), {}
    known = inspect.signature(type(default)).parameters
    for name in known:
        value = value_of(default, name)
        small = shrunk_value(name, value, request, kept, layer_count(default))
        if small is not value:
            arguments[name] = small
    if "kv_lora_rank" in known and "num_key_value_heads" in known:
        arguments["num_key_value_heads"] = SIZES["num_attention_heads"]  # latent attention has no groups
    return arguments


def shrunk_value(name, value, request, kept, layers):
    """What becomes of the value of one field."""
    if isinstance(value, PretrainedConfig):
        return {**tiny_arguments(value, request), "model_type": value.model_type}
    if name == "rope_parameters" and isinstance(value, dict):
        return tiny_rope(value, request)
    if isinstance(value, list | tuple):
        return shrunk_list(name, value, kept, layers)
    if name in IDS:
        return IDS[name]
    if name in UNSET and value is None:
        return SIZES[name]
    if name in VOCABULARY:
        return request.vocabulary if value != 0 else 0
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    if name in WINDOWS:
        return request.window
    if name in LAYERS and kept:
        return len(kept)
    if name in EVERY:
        return min(value, EVERY[name])
    if isinstance(value, float) and (name.endswith(("dropout", "dropout_prob", "_pdrop", "layerdrop"))):
        return 0.0
    return SIZES.get(name, value) if value else value  # nothing stays nothing


def shrunk_list(name, value, kept, layers):
    """A list of layers' properties, or of their numbers, for the layers that are kept."""
    if layers and numbers_layers(name, value, layers):
        return [kept.index(i) for i in value if i in kept]
    if layers and len(value) == layers:
        size = SIZES.get(name.removesuffix("_per_layer"))
        return [value[i] if size is None else size for i in kept]
    return value


def tiny_rope(value, request):
    """Rotary parameters whose original length, where they name one, is a window, and whose axes share a tiny head."""
    changes = {}
    if "original_max_position_embeddings" in value:
        changes["original_max_position_embeddings"] = request.window
    if "mrope_section" in value:
        frequencies = int(SIZES["head_dim"] * value.get("partial_rotary_factor", 1)) // 2
        changes["mrope_section"] = [
            frequencies - frequencies // 2,
            frequencies // 4,
            frequencies // 2 - frequencies // 4,
        ]
    if changes:
        return {**value, **changes}
    return {key: tiny_rope(one, request) if isinstance(one, dict) else one for key, one in value.items()}


def value_of(config, name):
    """The value of a field; None where it differs between layers."""
    try:
        return getattr(config, name, None)
    except Exception:  # of a class that transformers does not export
        return vars(config).get(name)


def layer_count(config):
    """How many layers a configuration has; None where it does not say."""
    count = value_of(config, "num_hidden_layers")
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def numbers_layers(name, value, count):
    """Whether a list holds the numbers of some layers."""
    named = name.endswith(("_idxs", "_indices", "_layer_ids", "_layers")) and name != "no_rope_layers"
    return named and all(isinstance(one, int) and 0 <= one < count for one in value)


def layers_kept(config):
    """Numbers of the first layer of each kind, as the configuration's lists tell kinds apart; two at least."""
    count, marks = layer_count(config), []
    for name, value in vars(config).items():
        if not count or not isinstance(value, list | tuple):
            continue
        if numbers_layers(name, value, count):
            marks.append([i in value for i in range(count)])
        elif len(value) == count and all(one in (0, 1, None) or isinstance(one, str) for one in value):
            marks.append(list(value))
    kinds = list(zip(*marks, strict=True)) or [()] * (count or 0)
    first = sorted({kinds.index(kind) for kind in kinds})
    return first if len(first) > 1 else list(range(min(2, count or 0)))


LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
# fields that must have a value, even if the default of some configurations is None
UNSET = ("head_dim", "num_key_value_heads")


def layers(*kinds, **more):
    """Layers of some kinds."""
    return {"num_hidden_layers": len(kinds), "layer_types": list(kinds), **more}


def long_rope(request):
    """Rotary positions that are scaled otherwise as soon as any row is longer than the original length."""
    frequencies = SIZES["head_dim"] // 2
    factors = {"short_factor": [1.0] * frequencies, "long_factor": [1.0 + i for i in range(frequencies)]}
    return {
        "rope_parameters": {
            "rope_type": "longrope",
            "rope_theta": 1e4,
            "original_max_position_embeddings": request.window,
            "short_mscale": 1.2,
            "long_mscale": 1.3,
            **factors,
        },
        "original_max_position_embeddings": request.window,
    }


def windowed(request):
    """A window in one of two layers, which the configuration knows and leaves off by default."""
    return layers("full_attention", "sliding_attention", use_sliding_window=True, sliding_window=request.window)


def half_decoder(request):
    """Two BERTs, the second of which sees what precedes alone, and the first."""
    sizes = tiny_arguments(CONFIG_MAPPING["bert"](), request)
    return {
        "encoder": {**sizes, "model_type": "bert"},
        "decoder": {**sizes, "model_type": "bert", "is_decoder": True, "add_cross_attention": True},
    }


DISENTANGLED = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}


def axes(*sections):
    """Rotary positions whose frequencies are shared out between time, height and width."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": list(sections)}}


# model type: what the rules above cannot find, or a function of the Request that tells it
PECULIAR = {
    "bamba": {"attn_layer_indices": [1]},
    "cohere_compass_text": layers(
        "sliding_attention",
        "full_attention",
        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}, "full_attention": None},
    ),
    "dbrx": {"attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0}},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "encoder-decoder": half_decoder,
    "dots1": layers(
        "full_attention", "sliding_attention", n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1
    ),
    "blt": {"encoder_hash_byte_group_vocab": 50},
    "dots3_note_text": {
        **dict.fromkeys(["swa_q_lora_rank", "swa_kv_lora_rank", "swa_head_dim"], 16),
        **dict.fromkeys(["swa_qk_nope_head_dim", "swa_qk_rope_head_dim", "swa_v_head_dim"], 8),
        **dict.fromkeys(["swa_num_attention_heads", "swa_num_key_value_heads"], 4),
    },
    "deberta": DISENTANGLED,
    "deberta-v2": DISENTANGLED,
    "esmc": {"num_key_value_heads": 4},
    "granitemoehybrid": layers("linear_attention", "full_attention"),
    "gpt_neo": {"num_layers": 2, "attention_types": [[["global", "local"], 1]]},
    "hrm_text": {"num_hidden_layers": 1, "num_layers_per_stack": None, "H_cycles": 1, "L_cycles": 1},
    "lfm2": layers("conv", "full_attention", block_multiple_of=16),
    "lfm2_moe": layers("conv", "full_attention", num_dense_layers=1),
    "marian": {"decoder_start_token_id": 1},
    "minimax": {"block_size": 16},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "neomme": {"head_dim": 32},
    **dict.fromkeys(("phi3", "phimoe", "phi4_multimodal"), long_rope),
    **dict.fromkeys(("qwen2", "qwen2_moe", "qwen3", "qwen3_moe"), windowed),
    "qwen4_exp_text": lambda request: layers(
        "linear_attention",
        "indexed_attention",
        **{"indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 8},
        **{"indexer_budget": request.window, "indexer_compress_ratio": 4},
        **{"ple_layer_ids": [1], "ngram_vocab_size_base": 64, "heads_per_ngram": 2, "split_ngram_parts": 2},
    ),
    "reformer": {"hash_seed": 0, "axial_pos_shape": [8, 16], "axial_pos_embds_dim": [16, 16]},
    "recurrent_gemma": {"num_hidden_layers": 3},
    # Parts that no text passes through, and what ties them to those that it does.
    "chameleon": {"vocabulary_map": {"<image>": 8}},
    "chameleon_vqgan": {"base_channels": 32, "channel_multiplier": [1], "embed_dim": 16, "num_embeddings": 8},
    "emu3": {"vocabulary_map": {"<image>": 8, "<|extra_200|>": 9}},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse"], "num_experts_per_tok": 2},
    "emu3_vqgan": {"base_channels": 32, "channel_multiplier": [1], "codebook_size": 8},
    "ernie4_5_vl_moe_text": axes(1, 1, 2),
    "glm4v_moe_text": {"rope_parameters": {**axes(1, 1, 0)["rope_parameters"], "partial_rotary_factor": 0.5}},
    **dict.fromkeys(["glm4v_text", "glm_ocr_text", "hunyuan_vl_text", "paddleocr_vl_text"], axes(2, 1, 1)),
    **dict.fromkeys(["qwen2_5_omni_text", "qwen2_5_vl_text", "qwen2_vl_text"], axes(2, 1, 1)),
    "florence_vision": {"embed_dim": [16] * 4, "num_heads": [2] * 4, "num_groups": [2] * 4, "depths": [1] * 4},
    "glm5_next_text": {"index_kpool": 4},
    "clip_vision_model": {"hidden_size": 64},  # granite4_vision wants a multiple
    "granite4_vision": {"deepstack_layer_map": [[0, 0]], "spatial_target_layers": [0, 0, 1, 1]}
    | {"downsample_rate": "1/2"},
    "janus_vqgan": {"base_channels": 32, "channel_multiplier": [1], "embed_dim": 16, "num_embeddings": 8},
    "molmo2_adapter": {"vision_feature_layer": [0, 1]},
    "qwen2_5_omni_thinker": {"vision_start_token_id": 8},
    "qwen3_omni_moe_thinker": {"vision_start_token_id": 8},
    "radio": {"video_temporal_patch_size": 2},
    "step3p5": lambda request: layers("full_attention", "sliding_attention", sliding_window=request.window),
    "vibevoice_acoustic_tokenizer_encoder": {"num_filters": 4, "depths": [1] * 3, "downsampling_ratios": [2] * 2},
    "t5gemma": {"decoder_start_token_id": 0},
    "t5gemma2": {"decoder_start_token_id": 0},
    "xmod": {"default_language": "en_XX"},
    "zamba": {"layers_block_type": ["linear_attention", "hybrid", "hybrid"]}
    | {"num_hidden_layers": 3, "attention_hidden_size": 64, "attention_head_dim": 16},
    "zaya": {"num_experts_per_tok": 1},
}

# Why some have no tiny model that reads text.
UNFIT = named(
    {
        "its vision tower needs timm and pillow": "fast_vlm gemma3n perception_lm",
        "it needs scipy": "inkling_mm_model",
        "it reads the keys and values of the model that it assists": "gemma4_assistant gemma4_unified_assistant",
        "it reads no text without an image": """blip blip-2 idefics instructblip instructblipvideo kosmos-2 pix2struct
            pp_formulanet udop vision-encoder-decoder""",
        "its vocabulary is sounds": "musicgen musicgen_melody",
        "it reads no text without sound": "nemo_speechlm voxtral_realtime",
        "it fills blocks by diffusion, and has no distribution of the next token": "diffusion_gemma",
        "it moves robots": "pi0",
    }
)
