"""Makes a small byte-level BPE tokenizer folder that the peers load without a network. Usage: tokenizer.py DIR"""
import json
import os
import pathlib
import sys
import sysconfig

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

files = [str(p) for p in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))[:150]]
t = Tokenizer(models.BPE())
t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
t.decoder = decoders.ByteLevel()
t.train(files, trainers.BpeTrainer(vocab_size=8000, special_tokens=["<|endoftext|>"],
                                   initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
t.save(out + "/tokenizer.json")
end = "<|endoftext|>"
json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "bos_token": end, "pad_token": end,
           "model_max_length": 131072, "clean_up_tokenization_spaces": False,
           "chat_template": "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"},
          open(out + "/tokenizer_config.json", "w"))
json.dump({"model_type": "gpt2", "vocab_size": t.get_vocab_size(), "n_positions": 131072, "n_ctx": 131072, "n_embd": 16,
           "n_layer": 1, "n_head": 1, "architectures": ["GPT2LMHeadModel"]}, open(out + "/config.json", "w"))
