"""A language model behind LitServe with OpenAI's chats: ``python litserve_program.py FOLDER PORT``.

It shares no code with fairlap: transformers' model is called for one token after another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import litserve  # type: ignore[import-not-found, unused-ignore]
import torch
import transformers


class Greedy(litserve.LitAPI):  # type: ignore[misc, unused-ignore]
    def setup(self, device: str) -> None:
        folder = sys.argv[1]
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").to(device).eval()

    def predict(self, messages: list[dict[str, Any]], context: dict[str, Any]) -> Iterator[dict[str, Any]]:
        given = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        read, cache = torch.tensor([given["input_ids"]]), transformers.DynamicCache(config=self.model.config)
        used = {"prompt_tokens": read.shape[1]}
        for count in range(1, context["max_tokens"] + 1):
            with torch.inference_mode():
                logits = self.model(input_ids=read, past_key_values=cache, use_cache=True).logits
            read = logits[:, -1:].argmax(-1)
            text = self.tokenizer.decode(read[0])
            yield {"role": "assistant", "content": text, **used, "completion_tokens": count}


if __name__ == "__main__":
    server = litserve.LitServer(Greedy(spec=litserve.OpenAISpec()), accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(sys.argv[2]), generate_client_file=False)
