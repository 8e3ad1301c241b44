"""Which models are of one family, by their names as people write them."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from cases import each_case
from evenhand.judges.families import Families, _patterns

KNOWN = {
    "openai:gpt-5-mini": "gpt",
    "gpt4_1106_preview": "gpt",
    "GPT-4": "gpt",
    "gpt-4.1-nano": "gpt",
    "azure/gpt-35-turbo": "gpt",
    "openai/gpt-oss-20b": "gpt",
    "chatgpt-4o-latest": "gpt",
    "text-davinci-003": "gpt",
    "openai:o1": "gpt",
    "openai/o3-mini": "gpt",
    "o4-mini-2025-04-16": "gpt",
    "anthropic:claude-sonnet-4-5": "claude",
    "openrouter/anthropic/claude-3.5-sonnet": "claude",
    "bedrock:anthropic.claude-3-5-sonnet-20241022-v2:0": "claude",
    "meta-llama/Llama-3.1-70B-Instruct": "llama",
    "bedrock:us.meta.llama3-1-70b-instruct-v1:0": "llama",
    "ollama/llama3:8b-instruct-q4_K_M": "llama",
    "Meta-Llama-3-8B-Instruct.Q4_K_M.gguf": "llama",
    "vicuna-13b-v1.5": "llama",
    "alpaca-7b": "llama",
    "WizardLM-13B-V1.2": "llama",
    "wizardlm-2-8x22b": "mistral",
    "Qwen/Qwen2.5-72B": "qwen",
    "QwQ-32B-Preview": "qwen",
    "AIDC-AI/Marco-o1": "qwen",
    "local:/home/llama/models/qwen2.5-7b-instruct.gguf": "qwen",
    "vertex_ai/gemini-2.5-pro": "gemini",
    "gemma-2-9b-it": "gemini gemma",
    "TheBloke/Mistral-7B-Instruct-v0.2-GGUF": "mistral",
    "mixtral-8x7b-instruct-v0.1": "mistral",
    "magistral-small-2506": "mistral",
    "codestral-latest": "mistral",
    "deepseek-r1": "deepseek",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": "deepseek qwen",
    "DeepSeek-R1-Distill-Llama-70B": "deepseek llama",
    "Skywork/Skywork-o1-Open-Llama-3.1-8B": "llama skywork",
    "THUDM/chatglm3-6b": "glm",
    "zai-org/GLM-4.5": "glm",
    "moonshotai/Kimi-K2-Instruct": "kimi",
    "moonshot-v1-8k": "kimi",
    "01-ai/Yi-34B-Chat": "yi",
    "phi3:mini": "phi",
    "microsoft/Phi-3.5-mini-instruct": "phi",
    "cohere:command-r-plus": "command",
    "x-ai/grok-4": "grok",
    "PaLM2": "palm",
    "tiiuae/falcon-40b-instruct": "falcon",
    "baichuan2-13b-chat": "baichuan",
    "internlm2-chat-20b": "internlm",
    "doubao-1.5-pro": "doubao",
    "baidu/ernie-4.5-21b": "ernie",
    "tencent/Hunyuan-A13B": "hunyuan",
    "MiniMaxAI/MiniMax-M1": "minimax",
    "local:smollm2-135m-instruct": "smollm",
    "bedrock:amazon.nova-pro-v1:0": "nova",
    "ibm-granite/granite-3.1-8b-instruct": "granite",
    "nvidia/Llama-3.1-Nemotron-70B-Instruct": "llama nemotron",
    "nemotron-4-340b-instruct": "nemotron",
    "allenai/OLMo-2-1124-7B": "olmo",
}
UNKNOWN = (
    *("solo1", "foo-o1", "o1x", "o5", "gpt4all", "minigpt4", "gpt-neox-20b", "gpt-j-6b"),
    *("ollama", "llama.cpp", "llama-server", "llamaindex", "open_llama_3b", "groq", "claudette"),
    *("supernova", "palmtree-1", "philosophy-1", "openai:my-deployment", "azure/prod", "new", ""),
    # What a recording is called says as much of the data as of the judge.
    *("replay:qlora_vicuna__gpt-4.jsonl.gz", "command:./ask-claude.sh", "baseline:longer"),
)


@each_case(("name", "families"), KNOWN.items())
def test_a_name_as_people_write_it_has_its_families(name: str, families: str) -> None:
    assert Families().of(name) == set(families.split())


@each_case("name", UNKNOWN)
def test_a_name_that_only_looks_alike_has_no_family(name: str) -> None:
    assert Families().of(name) == set()


def test_own_entries_decide_for_the_names_that_they_match() -> None:
    own = Families((("acme-7b", ("llama", "acme")), ("gpt-4-clone", ()), ("acme", ("acme",))))
    assert own.of("vllm/ACME-7B-chat") == {"llama", "acme"}
    assert own.of("acme-70b") == {"acme"}  # acme-7b ends before a digit that is not its own
    assert own.of("gpt-4-clone") == set()
    assert own.of("gpt-4") == {"gpt"}


def test_a_judge_without_a_telling_name_is_known_by_the_models_it_served() -> None:
    families = Families()
    assert families.of_judge("replay:a.jsonl", ["gpt-4-0613"]) == {"gpt"}
    assert families.of_judge("openai:default", ["Qwen2.5-7B", "default"]) == {"qwen"}
    assert families.of_judge("openai:gpt-4o", ["claude-3"]) == {"gpt"}
    assert families.of_judge("openai:default") == set()


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=40))
def test_any_name_is_answered_and_case_makes_no_difference(name: str) -> None:
    families = Families()
    assert families.of(name.upper()) == families.of(name)
    assert families.of(name) <= set(_patterns())


def test_a_hostile_name_takes_no_time() -> None:
    started = time.perf_counter()
    for piece in ("gpt-", "llama-open_", "wizard-", "a", "-", "command-r-plus", "o1."):
        Families().of(piece * 1_000_000)
    assert time.perf_counter() - started < 1.0
