"""The Transformer: its fast attention against the plain one, its cache against none, its encodings against formulas."""

from __future__ import annotations

import copy
import math
from itertools import islice
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the Transformer needs torch")

from torch import Tensor  # noqa: E402

from compile.errors import REFUSED, CapacityError  # noqa: E402
from compile.transformer import Transformer, TransformerConfig  # noqa: E402
from compile.transformer.annotations import Annotations, Fact, Register  # noqa: E402
from compile.transformer.cache import Cache  # noqa: E402
from compile.transformer.decoding import Decoder  # noqa: E402
from compile.transformer.encodings import (  # noqa: E402
    ENCODINGS,
    ROOMS,
    alibi_slopes,
    rotary_angles,
    rotate,
    sinusoids,
    t5_bucket,
)

torch.set_num_threads(1)

MIXED = ((2, None, 1), (None, 5, 3), (70, 2, None))  # shuffled, short and long windows, three groups in the last layer


def make(encoding: str = "hard_alibi", seed: int = 0, **changes: Any) -> Transformer:
    """A small float64 model with weights large enough that attention is far from uniform."""
    torch.manual_seed(seed)
    options: dict[str, Any] = {"vocabulary": 11, "layers": 3, "heads": 3, "d_model": 12, "d_head": 4, "d_mlp": 16}
    options |= {"windows": MIXED} if encoding == "hard_alibi" else {}
    options |= {"max_positions": 200 * ROOMS[encoding]} if encoding in ROOMS else {}
    model = Transformer(TransformerConfig(encoding=encoding, **({"dtype": "float64"} | options | changes)))
    model.reset_parameters(spread=0.6)
    for name, parameter in model.named_parameters():
        if name.endswith("bias.table"):
            torch.nn.init.normal_(parameter)
    return model


def tokens(*shape: int, seed: int = 1, vocabulary: int = 11) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, vocabulary, shape)


def openly(model: Transformer, rows: np.ndarray) -> Tensor:
    """Logits by the path that builds whole score matrices."""
    return model.run_with_hooks(rows, {})


# ------------------------------------------------------------------------------------------------- attention


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("length", [1, 2, 16, 33, 150])
def test_fast_attention_is_plain_attention(encoding: str, length: int) -> None:
    model, rows = make(encoding), tokens(2, length)
    torch.testing.assert_close(model(torch.from_numpy(rows)), openly(model, rows))


def test_long_sequences_are_plain_attention_too() -> None:
    model, rows = make(layers=1, windows=(3, None, 1)), tokens(1, 1100)
    torch.testing.assert_close(model(torch.from_numpy(rows)), openly(model, rows))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_gradients_of_fast_attention(encoding: str) -> None:
    model, rows = make(encoding), tokens(2, 37)
    gradients = []
    for run in (lambda: model(torch.from_numpy(rows)), lambda: openly(model, rows)):
        model.zero_grad()
        run().square().sum().backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], msg=name)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_output_depends_on_later_tokens(encoding: str) -> None:
    model, rows = make(encoding), tokens(1, 40)
    changed = rows.copy()
    changed[0, 25:] = (changed[0, 25:] + 1) % 11
    before, after = model(torch.from_numpy(rows)), model(torch.from_numpy(changed))
    torch.testing.assert_close(before[:, :25], after[:, :25])
    assert not torch.allclose(before[:, 25:], after[:, 25:])


def test_a_window_of_m_sees_the_m_latest_tokens() -> None:
    model = make()
    _, cache = model.run_with_cache(tokens(100))
    i, j = np.indices((100, 100))
    for layer, windows in enumerate(MIXED):
        pattern = cache[f"blocks.{layer}.attn.hook_pattern"][0].numpy()
        for head, window in enumerate(windows):
            assert np.array_equal(pattern[head] > 0, (j <= i) & (j > i - (window or math.inf)))


def test_zero_weights_attend_uniformly() -> None:
    model = Transformer.zeros(make().config)
    _, cache = model.run_with_cache([3, 1, 4, 1, 5])
    assert model.nonzero_count() == sum(p.numel() for n, p in model.named_parameters() if "ln" in n and "weight" in n)
    np.testing.assert_allclose(cache["blocks.0.attn.hook_pattern"][0, 0, 4], [0, 0, 0, 0.5, 0.5])
    np.testing.assert_allclose(cache["blocks.0.attn.hook_pattern"][0, 1, 4], [0.2] * 5)


def test_layers_without_attention_or_mlp() -> None:
    model = make(layers=3, heads=(2, 0, 1), d_head=(3, 1, 7), d_mlp=(0, 5, 0), windows=((1, None), (), (2,)))
    rows = tokens(2, 20)
    torch.testing.assert_close(model(torch.from_numpy(rows)), openly(model, rows))
    _, cache = model.run_with_cache(rows)
    assert "blocks.1.attn.hook_z" not in cache and "blocks.0.mlp.hook_pre" not in cache
    assert np.array_equal(model.generate(rows[0], 5), uncached(model, rows[0], 5))


@pytest.mark.parametrize("encoding", ["hard_alibi", "alibi", "rope", "t5"])
def test_it_compiles_without_graph_breaks(encoding: str) -> None:
    model, rows = make(encoding), torch.from_numpy(tokens(2, 40))
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(rows), model(rows))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_mixed_precision_computes_about_the_same(encoding: str) -> None:
    model, rows = make(encoding, dtype="float32"), torch.from_numpy(tokens(2, 40))
    model.reset_parameters(0.2)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model(rows)
        mixed.float().square().mean().backward()
    exact = model(rows)
    assert (mixed - exact).norm() < 0.05 * exact.norm()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_a_copy_is_independent() -> None:
    model = make()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.embed.weight.zero_()
    assert model.embed.weight.any() and twin(torch.from_numpy(tokens(1, 5))).shape == (1, 5, 11)


# ------------------------------------------------------------------------------------------------- encodings


def test_slopes_may_differ_by_layer_and_be_none_in_some() -> None:
    """What layers have in common in the cache must not be taken by one that has slopes of its own."""
    model = make("alibi", windows=(2, None, None), slopes=((0, 0, 0), (0, 0.5, 0.1), (0, 0, 0)))
    assert [block.attn.bias.additive for block in model.blocks] == [False, True, False]
    rows = tokens(2, 40)
    torch.testing.assert_close(model(torch.from_numpy(rows)), openly(model, rows))
    said = model.generate(rows[:, :5], 12)
    for row in said:
        assert np.array_equal(model.predict(row)[4:-1], row[5:])
    assert not torch.allclose(
        model(torch.from_numpy(rows)), make("alibi", windows=(2, None, None), slopes=(0, 0, 0))(torch.from_numpy(rows))
    )


def test_with_a_slope_downwards_a_head_looks_at_the_far_end_of_its_window() -> None:
    model = Transformer.zeros(make("alibi", windows=(None, 4, 7), slopes=(0.0, -40.0, -40.0)).config)
    even, *far = model.run_with_cache(tokens(40))[1]["blocks.1.attn.hook_pattern"][0, :, 39].numpy()
    np.testing.assert_allclose(even, 1 / 40)
    for pattern, place in zip(far, (36, 33), strict=True):
        np.testing.assert_allclose(pattern, np.arange(40) == place, atol=1e-6)


def test_gated_mlps_multiply() -> None:
    """With a linear map and a gate that read the same number, what comes out is a product, not a sum."""
    model, rows = make(gated=True), tokens(2, 20)
    logits, cache = model.run_with_cache(rows)
    hidden = torch.nn.functional.gelu(cache["blocks.1.mlp.hook_pre"]) * cache["blocks.1.mlp.hook_pre_linear"]
    torch.testing.assert_close(cache["blocks.1.mlp.hook_post"], hidden)
    assert model.parameter_count() > make().parameter_count()
    with torch.no_grad():
        for block in model.blocks:
            block.mlp.gate.weight.zero_()
            block.mlp.gate.bias.zero_()
    assert not model.run_with_cache(rows)[1]["blocks.1.mlp.hook_post"].any() and logits.isfinite().all()


@pytest.mark.parametrize("slopes", [[], [0.0, 0.25, 3]])
def test_alibi_adds_slope_times_distance(slopes: list[float]) -> None:
    torch.testing.assert_close(alibi_slopes(8), torch.tensor([2.0**-k for k in range(1, 9)]))
    model = Transformer.zeros(make("alibi", **({"slopes": slopes} if slopes else {})).config)
    _, cache = model.run_with_cache(tokens(9))
    scores = cache["blocks.0.attn.hook_attn_scores"][0]
    i, j = torch.meshgrid(torch.arange(9), torch.arange(9), indexing="ij")
    for head, slope in enumerate(slopes or alibi_slopes(3).tolist()):
        expected = torch.where(j <= i, -slope * (i - j).double(), -math.inf)
        torch.testing.assert_close(scores[head], expected, check_dtype=False, rtol=1e-6, atol=0)


def test_randomized_places_are_in_order_and_drawn_anew() -> None:
    model, rows = make("randomized"), torch.from_numpy(tokens(2, 40))
    first, before = model.places.clone(), model(rows)
    assert len(first) == 200 and (first.diff() > 0).all() and first[0] >= 0 and first[-1] < 800
    model.draw_places(seed=5)
    assert not torch.equal(first, model.places) and not torch.allclose(before, model(rows))
    assert torch.equal(first, make("randomized").places)  # a model that is only used always has the same ones
    with pytest.raises(ValueError, match="room for 200"):
        model(torch.from_numpy(tokens(1, 201)))


def test_rotated_products_depend_on_distance_only() -> None:
    q, k = torch.randn(2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rotation = rotary_angles(torch.arange(50), 6, 1e4, torch.float64)
    products = rotate(q.expand(50, 8), rotation) @ rotate(k.expand(50, 8), rotation).T
    for distance in (0, 1, 7):
        diagonal = products.diagonal(-distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    assert abs(products[9, 2] - products[9, 3]) > 1e-3


def test_sinusoids_are_the_formula() -> None:
    found = sinusoids(torch.arange(20), 7, torch.float64)
    for position, d in ((0, 0), (3, 1), (19, 4), (11, 6)):
        angle = position / 10_000 ** (2 * (d // 2) / 7)
        expected = (math.cos(angle) if d % 2 else math.sin(angle)) * 0.02 * math.sqrt(2)
        assert found[position, d].item() == pytest.approx(expected, abs=1e-12)


def test_t5_buckets_are_hugging_faces() -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5", reason="compares with transformers")
    distance = torch.arange(1000)
    theirs = t5.T5Attention._relative_position_bucket(-distance, bidirectional=False, num_buckets=32, max_distance=128)
    assert torch.equal(t5_bucket(distance), theirs)


def test_fire_is_the_formula() -> None:
    fire = make("fire").blocks[0].attn.bias.fire
    distance, query = torch.tensor([0, 3, 700]), torch.tensor([10, 10, 800])
    c = fire.curve.item()
    progress = [math.log1p(c * d) / math.log1p(c * max(q, 512)) for d, q in ((0, 10), (3, 10), (700, 800))]
    x = torch.tensor(progress, dtype=torch.float64).unsqueeze(1)
    expected = torch.relu(x @ fire.up.weight.T + fire.up.bias) @ fire.down.weight.T + fire.down.bias
    torch.testing.assert_close(fire(distance, query), expected)


def test_learned_positions_run_out_with_a_sentence() -> None:
    model = make("learned", max_positions=6, prepend=0)
    assert model.predict(tokens(5)).shape == (5,)
    with pytest.raises(ValueError, match="7 positions were given"):
        model.predict(tokens(6))
    with pytest.raises(ValueError, match="7 positions"):
        model.generate(tokens(4), 4)
    assert len(model.generate(tokens(4), 2)) == 6


# ------------------------------------------------------------------------------------------- as GPT-NeoX does


def test_same_logits_and_loss_as_hugging_face_gpt_neox() -> None:
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    from compile.transformer.gpt_neox import copy_gpt_neox_weights, gpt_neox_config

    torch.manual_seed(0)
    for parallel in (True, False):
        sizes = {"vocab_size": 19, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
        heads = {"num_attention_heads": 4, "use_parallel_residual": parallel, "bos_token_id": 0, "eos_token_id": 1}
        theirs = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**sizes, **heads)).eval()
        with torch.no_grad():
            for parameter in theirs.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        ours = Transformer(TransformerConfig(**gpt_neox_config(theirs.config)))
        copy_gpt_neox_weights(ours, theirs.state_dict())
        rows = torch.from_numpy(tokens(3, 70, vocabulary=19))
        answer = theirs(input_ids=rows, labels=rows)
        logits = ours(rows)
        torch.testing.assert_close(logits, answer.logits, atol=1e-5, rtol=1e-5)
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), rows[:, 1:].flatten())
        torch.testing.assert_close(loss, answer.loss, atol=1e-5, rtol=1e-5)
        earlier = {name.replace("lm_head", "embed_out"): tensor for name, tensor in theirs.state_dict().items()}
        copy_gpt_neox_weights(again := Transformer(ours.config), earlier)
        assert torch.equal(again(rows), logits)


# ------------------------------------------------------------------------------------------------ generation


def uncached(
    model: Transformer, prompt: Any, count: int, context: int | None = None, advance: int = 20, stop: Any = ()
) -> np.ndarray:
    """Greedy decoding in the plainest way: the whole window through the whole model, for every token."""
    row = list(prompt)
    window = row[-context:] if context else list(row)
    for _ in range(count):
        token = int(model.predict(window)[-1])
        row.append(token)
        if token in stop:
            break
        if len(window) == context:
            window = window[advance:]
        window.append(token)
    return np.array(row)


def ragged(*lengths: int, seed: int = 5) -> list[np.ndarray]:
    return [tokens(length, seed=seed + length) for length in lengths]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_cached_logits_are_uncached_logits(encoding: str) -> None:
    model, rows, lengths = make(encoding), tokens(4, 110), torch.tensor([1, 3, 40, 90])
    expected, everyone = model(torch.from_numpy(rows)), torch.arange(4)
    memory = Cache(model, 4)
    with torch.no_grad():
        memory.reserve(90)
        found = memory.encode(torch.from_numpy(rows[:, :90]), everyone, lengths)
        for _ in range(20):
            torch.testing.assert_close(found, expected[everyone, lengths - 1])
            lengths = lengths + 1
            memory.reserve(int(lengths.max()))
            found = memory.extend(torch.from_numpy(rows)[everyone, lengths - 1])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_cached_ragged_generation_is_uncached_generation(encoding: str) -> None:
    model = make(encoding)
    prompts = ragged(1, 2, 7, 30, 80)
    results = model.generate(prompts, 25)
    for prompt, result in zip(prompts, results, strict=True):
        assert np.array_equal(result, uncached(model, prompt, 25))


@pytest.mark.parametrize("window", [1, 2, 3, 8, 64, 100, 10**7])
def test_cached_generation_for_every_kind_of_window(window: int) -> None:
    model = make(layers=2, heads=2, windows=(window, None), seed=window)
    for prompt in ragged(1, 5, 70):
        assert np.array_equal(model.generate(prompt, 40), uncached(model, prompt, 40))


@pytest.mark.parametrize("encoding", ["hard_alibi", "rope", "learned", "fire"])
@pytest.mark.parametrize("prepend", [None, 10])
def test_sliding_context_is_the_papers(encoding: str, prepend: int | None) -> None:
    room = {"max_positions": 12 + (prepend is not None)} if encoding == "learned" else {}
    model = make(encoding, prepend=prepend, **room)
    prompts = ragged(1, 5, 11, 12, 13, 40)
    results = model.generate(prompts, 30, context=12, advance=5)
    for prompt, result in zip(prompts, results, strict=True):
        assert np.array_equal(result, uncached(model, prompt, 30, context=12, advance=5))


@pytest.mark.parametrize("context", [None, 9])
def test_rows_stop_on_their_own(context: int | None) -> None:
    model, prompts = make(), ragged(3, 4, 5, 6, 7, 8, 9, 10)
    ends = {4, 9}
    results = model.generate(prompts, 60, stop=ends, context=context, advance=2)
    expected = [uncached(model, prompt, 60, context, 2, ends) for prompt in prompts]
    assert [r.tolist() for r in results] == [e.tolist() for e in expected]
    lengths = {len(e) - len(p) for e, p in zip(expected, prompts, strict=True)}
    assert len(lengths) > 2 and min(lengths) < 60, "the case must have rows that stop at different times"


def test_generation_of_one_prompt_and_of_none() -> None:
    model, prompt = make(), tokens(6)
    alone = model.generate(prompt, 9)
    assert isinstance(alone, np.ndarray) and alone.dtype == np.int64 and np.array_equal(alone[:6], prompt)
    assert np.array_equal(alone, model.generate(prompt.tolist(), 9))
    assert np.array_equal(alone, model.generate(torch.from_numpy(prompt), 9))
    assert np.array_equal(alone, model.generate(prompt[None], 9)[0])
    assert np.array_equal(model.generate(prompt, 0), prompt)
    assert model.generate(prompt, 9, stop=int(alone[6])).tolist() == alone[:7].tolist()
    assert model.generate(prompt, 9, stop=np.int64(alone[6])).tolist() == alone[:7].tolist()


def test_streaming_yields_the_same_tokens() -> None:
    model, prompts = make(), ragged(3, 6)
    assert list(model.stream(prompts[0], 8)) == model.generate(prompts[0], 8)[3:].tolist()
    steps = np.array(list(islice(model.stream(prompts, 10**9), 8)))
    for row, result in enumerate(model.generate(prompts, 8)):
        assert steps[:, row].tolist() == result[len(prompts[row]) :].tolist()
    assert torch.is_grad_enabled()


def test_prepended_token_and_mapped_outputs() -> None:
    model = make(prepend=10, outputs=(7, 2, 5))
    plain = make(outputs=(7, 2, 5))
    plain.load_state_dict(model.state_dict())
    row = tokens(12, vocabulary=10)
    assert model(torch.from_numpy(row[None])).shape == (1, 12, 3)
    assert np.array_equal(model.predict(row), plain.predict([10, *row])[1:])
    assert np.array_equal(model.generate(row, 10), plain.generate([10, *row], 10)[1:])
    assert set(model.generate(row, 40)[12:]) <= {7, 2, 5}
    assert np.array_equal(model.generate([], 10), plain.generate([10], 10)[1:])
    assert np.array_equal(model.generate([[], [1, 2]], 10)[0], model.generate([], 10))
    logits, cache = model.run_with_cache(row)
    assert logits.shape == (1, 12, 3) and cache["hook_embed"].shape == (1, 13, 12)


def test_several_prepended_tokens() -> None:
    model, plain = make(prepend=10, prepend_count=3), make()
    row = tokens(12, vocabulary=10)
    assert np.array_equal(model.predict(row), plain.predict([10, 10, 10, *row])[3:])
    assert np.array_equal(model.generate(row, 10), plain.generate([10, 10, 10, *row], 10)[3:])
    assert np.array_equal(model.generate(row, 10, context=6, advance=2), uncached(model, row, 10, 6, 2))


def bigrams(following: dict[int, int], **changes: Any) -> Transformer:
    """A model without layers that answers each token with the one that follows it."""
    size = len(following)
    config = TransformerConfig(
        vocabulary=size, layers=0, heads=1, d_model=size, norm="none", outputs=list(following.values()), **changes
    )
    model = Transformer.zeros(config)
    model.embed.weight.data = torch.eye(size)
    model.unembed.weight.data = torch.eye(size)
    return model


def test_what_finished_rows_would_say_does_not_matter() -> None:
    model = bigrams({0: REFUSED, 1: 2, 2: 3, 3: 0, 4: 4, 5: -7}, refusal="too many steps")
    for context in (None, 2):
        results = model.generate([[1], [4], [4]], 8, stop=3, context=context, advance=1)
        assert [r.tolist() for r in results] == [[1, 2, 3], [4] * 9, [4] * 9]
    with pytest.raises(CapacityError, match="too many steps"):
        model.generate([[3], [4]], 8)
    with pytest.raises(ValueError, match="token -7"):
        model.generate([5], 1)
    assert model.predict([4, 5]).tolist() == [4, -7]


def test_window_heads_keep_only_their_window() -> None:
    model = make(layers=1, heads=4, windows=(2, 5, None, 3), d_head=3)
    decoder = Decoder(model, [[1] * 40, [2] * 3], None, 20)
    list(decoder.run(30, np.array([])))
    local, unbounded = decoder.memory.layers[0].groups
    assert local.keys.shape == (2, 3, 5, 3) and local.values.shape == (2, 3, 5, 3)
    assert unbounded.slots == 40 + 29 and unbounded.keys.shape[2] < 2 * 69


def test_memory_grows_geometrically() -> None:
    memory = Cache(make(layers=1, heads=1, windows=(None,)), rows=1)
    capacities = []
    for length in range(1, 1025):
        memory.reserve(length)
        capacities.append(memory.layers[0].groups[0].keys.shape[2])
    assert len(set(capacities)) <= 11 and capacities[-1] < 2048


def test_what_cannot_be_generated_is_refused() -> None:
    model = make()
    for prompt, count, options, message in (
        ([], 3, {}, "prompt is empty"),
        ([[1], []], 3, {}, "prompt is empty"),
        ([1, 11], 3, {}, "token 11"),
        ([1, -1], 3, {}, "token -1"),
        ([1.5], 3, {}, "whole numbers"),
        ([1], -1, {}, "count is -1"),
        ([1], 3, {"context": 0}, "context is 0"),
        ([1], 3, {"context": 5, "advance": 6}, "advance is 6"),
    ):
        with pytest.raises(ValueError, match=message):
            model.generate(prompt, count, **options)


# ---------------------------------------------------------------------------------- predictions, hooks, labels


def test_predictions_have_the_shape_of_the_tokens() -> None:
    model, rows = make(), tokens(4, 9)
    best = model(torch.from_numpy(rows)).argmax(-1).numpy()
    assert np.array_equal(model.predict(rows), best) and np.array_equal(model.predict(rows[2]), best[2])
    assert np.array_equal(model.predict(rows.tolist()), best)
    assert model.predict([]).shape == (0,) and model.predict(np.zeros((3, 0), int)).shape == (3, 0)
    with pytest.raises(ValueError, match="3-dimensional"):
        model.predict(np.zeros((1, 1, 1), int))


def test_many_rows_are_predicted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = make(), tokens(7, 9)
    whole, generated = model.predict(rows), model.generate(rows, 5)
    monkeypatch.setattr("compile.transformer.transformer.TOKENS_AT_ONCE", 20)
    assert np.array_equal(model.predict(rows), whole)
    assert np.array_equal(model.generate(rows, 5), generated)


def test_activations_have_their_transformer_lens_names() -> None:
    model = make("rope")
    logits, cache = model.run_with_cache(tokens(2, 7))
    shapes = {name: tuple(value.shape) for name, value in cache.items()}
    assert shapes["hook_embed"] == shapes["ln_final.hook_normalized"] == (2, 7, 12)
    for name in ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post"):
        assert shapes[f"blocks.1.hook_{name}"] == (2, 7, 12)
    for name in ("q", "k", "v", "z", "rot_q", "rot_k"):
        assert shapes[f"blocks.1.attn.hook_{name}"] == (2, 7, 3, 4)
    assert shapes["blocks.1.attn.hook_pattern"] == shapes["blocks.1.attn.hook_attn_scores"] == (2, 3, 7, 7)
    assert shapes["blocks.1.mlp.hook_pre"] == shapes["blocks.1.mlp.hook_post"] == (2, 7, 16)
    torch.testing.assert_close(logits, model(torch.from_numpy(tokens(2, 7))))
    together = cache["blocks.1.hook_resid_mid"] + cache["blocks.1.hook_mlp_out"]
    torch.testing.assert_close(together, cache["blocks.1.hook_resid_post"])
    assert "hook_pos_embed" in make("absolute").run_with_cache([1])[1]


def test_ablating_a_head_equals_removing_its_weights() -> None:
    model, rows = make(), tokens(2, 9)

    def silence(z: Tensor) -> Tensor:
        z = z.clone()
        z[:, :, 1] = 0
        return z

    ablated = model.run_with_hooks(rows, {"blocks.1.attn.hook_z": silence})
    untouched = model.run_with_hooks(rows, {"blocks.1.attn.hook_z": lambda z: None})
    torch.testing.assert_close(untouched, model(torch.from_numpy(rows)))
    model.blocks[1].attn.head(1).o.zero_()
    torch.testing.assert_close(ablated, model(torch.from_numpy(rows)))
    with pytest.raises(ValueError, match="no activation is called.*hook_zz"):
        model.run_with_hooks(rows, {"blocks.1.attn.hook_zz": silence})


def test_head_weights_are_views_of_the_right_rows() -> None:
    model = make(bias=False, norm="none")
    _, cache = model.run_with_cache(tokens(1, 5))
    x = cache["blocks.0.hook_resid_pre"]
    head = model.blocks[0].attn.head(2)
    torch.testing.assert_close(x @ head.k.T, cache["blocks.0.attn.hook_k"][:, :, 2])
    outs = [cache["blocks.0.attn.hook_z"][:, :, h] @ model.blocks[0].attn.head(h).o.T for h in range(3)]
    torch.testing.assert_close(sum(outs), cache["blocks.0.hook_attn_out"])


NOTHING = Annotations().to_dict()


def test_sizes_and_summary() -> None:
    annotations = Annotations(
        ((Fact("shift", "previous token"), Fact("count", "count of sep")), (Fact("match", "match"),)),
        (Fact("compute", "and"), Fact()),
        (Register("token", 0, 4, ("a", "b", "c", "d")), Register("count", 4, 6)),
    )
    model = Transformer(
        TransformerConfig(
            vocabulary=4,
            layers=2,
            d_model=6,
            heads=(2, 1),
            d_head=5,
            d_mlp=(7, 0),
            windows=((2, None), (None,)),
            norm="none",
            activation="relu",
            annotations=annotations,
        )
    )
    assert [tuple(row) for row in model.summary()] == [
        (0, 0, 2, "previous token", "shift"),
        (0, 1, None, "count of sep", "count"),
        (0, None, None, "and", "compute"),
        (1, 0, None, "match", "match"),
    ]
    biases = 3 * 10 + 6 + 7 + 6 + 3 * 5 + 6
    assert model.parameter_count() == model.config.rough_parameter_count + biases
    assert model.config.rough_parameter_count == 6 * (4 + 4) + 6 * 4 * (10 + 5) + 2 * 6 * 7
    assert Transformer.zeros(model.config).nonzero_count() == 0
    assert TransformerConfig.from_dict(model.config.to_dict()) == model.config


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"vocabulary": 0}, "vocabulary is 0"),
        ({"layers": "3"}, "layers is '3'"),
        ({"layers": True}, "layers is True"),
        ({"layers": 10**9}, "layers is 1000000000"),
        ({"d_model": 10**12}, "d_model"),
        ({"heads": 10**12}, "heads is 1000000000000"),
        ({"heads": (1, 2)}, "heads has 2 entries for 3 layers"),
        ({"heads": 5, "d_head": None}, "not a multiple"),
        ({"d_head": 0}, "d_head of layer 0"),
        ({"d_mlp": -1}, "d_mlp of layer 0"),
        ({"d_model": 2**20, "d_mlp": 2**20}, "parameters; at most"),
        ({"windows": (1, 2)}, "windows are for"),
        ({"windows": (0, 1, 2)}, "a window of layer 0 is 0"),
        ({"windows": ((1, 2, 3),)}, "windows are for"),
        ({"encoding": "nope", "windows": (1, 2, 3)}, "use 'hard_alibi'"),
        ({"encoding": "alibis"}, "choose one of"),
        ({"encoding": "rope", "d_head": 5}, "not even"),
        ({"encoding": "learned"}, "max_positions"),
        ({"slopes": (1, 2, 3)}, "only 'alibi' has them"),
        ({"encoding": "alibi", "slopes": (1, 2)}, "slopes are for"),
        ({"encoding": "alibi", "slopes": (1, 2, math.inf)}, "a slope of layer 0 is inf"),
        ({"norm": "batch"}, "choose one of none"),
        ({"activation": "tanh"}, "choose one of relu, gelu"),
        ({"dtype": "float16"}, "choose one of float32"),
        ({"bias": 1}, "expected true or false"),
        ({"scale": float("nan")}, "scale is nan"),
        ({"prepend": 11}, "prepend is 11"),
        ({"outputs": ()}, "outputs is empty"),
        ({"outputs": ("a",)}, "output"),
        ({"annotations": Annotations(heads=((Fact(),),) * 3)}, "heads of annotations do not fit"),
        ({"annotations": Annotations(mlps=(Fact(),))}, "1 facts about MLPs"),
        ({"annotations": Annotations(mlps=(Fact("juggle"),) * 3)}, "role 'juggle' of a MLP is unknown"),
        ({"annotations": Annotations(mlps=(Fact(nodes=(0,)),) * 3)}, "node 0 is none of the 0 operations"),
        ({"annotations": {"heads": []}}, "expected heads, mlps, registers, program"),
        ({"token_names": ("a",)}, "1 token_names"),
        ({"annotations": Annotations(registers=(Register("x", 3, 99),))}, "register 'x'"),
        ({"annotations": {**NOTHING, "registers": [["x", "3", 9]]}}, "is not .name, start, stop"),
        ({"annotations": {**NOTHING, "program": {"operations": [], "output": 0}}}, "output is none of them"),
        ({"extra": {"f": print}}, "JSON"),
        ({"extra": 3}, "expected a dictionary"),
    ],
)
def test_configurations_that_make_no_model_are_refused(changes: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"vocabulary": 11, "layers": 3, "heads": 3, "d_model": 12, "d_head": 4}
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**(options | changes))
