"""A small model with random weights for llama.cpp, and its vocabulary as transformers reads it:
`tiny_model.py FOLDER` makes FOLDER/tiny.gguf and FOLDER/tokenizer. See measure/bench-peers.

It does all the arithmetic of a model of that size, at the usual speed, and says nothing of worth. Each
word of WORDS is one token when a space stands before it, so whoever writes prompts of such words
knows their length. Each token that it emits is plain text with a space before it, so each comes in a
piece of its own: no half of a character is ever held back.
"""

import os
import sys

import gguf
import numpy as np
import tokenizers
import transformers

DIMENSIONS, LAYERS, HEADS, KEY_HEADS, INNER, CONTEXT = 512, 8, 8, 4, 1536, 8192
# Those of `joulebook bench`'s prompts.
WORDS = (
    "the of and energy joule watt token hello world apple river stone "
    "time house light water paper green table music north small early right"
).split()


def byte_letters():
    """The letter by which the usual byte vocabularies write each byte."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = (chr(code) for code in range(0x100, 0x200))
    return [chr(byte) if byte in plain else next(spare) for byte in range(256)]


def vocabulary():
    """Tokens and merges. A merge always takes the space and the letters so far, and the next one:
    nothing is merged in the middle of a word, so the order of merges does not matter."""
    letters = byte_letters()
    tokens, merges = list(letters), []
    for word in WORDS:
        begun = letters[ord(" ")]
        for letter in word:
            if begun + letter not in tokens:
                tokens.append(begun + letter)
                merges.append(f"{begun} {letter}")
            begun += letter
    return tokens, merges


def write_vocabulary(folder, tokens, merges, special):
    pairs = [tuple(merge.split(" ")) for merge in merges]
    model = tokenizers.models.BPE(vocab={token: at for at, token in enumerate(tokens)}, merges=pairs)
    vocabulary = tokenizers.Tokenizer(model)
    vocabulary.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    vocabulary.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=vocabulary, bos_token=special[0], eos_token=special[1])
    fast.save_pretrained(folder)


def write_model(path, tokens, merges, special):
    spoken = range(256, len(tokens))
    begin, end = len(tokens), len(tokens) + 1
    kinds = [gguf.TokenType.NORMAL] * len(tokens) + [gguf.TokenType.CONTROL] * len(special)
    tokens = tokens + special

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(DIMENSIONS)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_rope_dimension_count(DIMENSIONS // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(begin)
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)
    # A space before the text, so that its first word is one token, too.
    turn = special[0]
    writer.add_chat_template(
        "{% for message in messages %}" + turn + " {{ message['content'] }}{% endfor %}" + turn)

    chance = np.random.default_rng(1)

    def weights(*shape):
        return (chance.standard_normal(shape) * 0.05).astype(np.float32)

    # A layer's last step adds nothing to the stream, so what comes out is a token's own vector; and
    # with no number in that below 0, rows of -1 are the least likely, whatever came before.
    vectors = np.abs(weights(len(tokens), DIMENSIONS))
    likely = np.full_like(vectors, -1.0)
    likely[spoken] = weights(len(spoken), DIMENSIONS)
    ones = np.ones(DIMENSIONS, np.float32)
    keys = DIMENSIONS // HEADS * KEY_HEADS
    writer.add_tensor("token_embd.weight", vectors)
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", likely)
    for layer in range(LAYERS):
        name = f"blk.{layer}."
        writer.add_tensor(name + "attn_norm.weight", ones)
        writer.add_tensor(name + "attn_q.weight", weights(DIMENSIONS, DIMENSIONS))
        writer.add_tensor(name + "attn_k.weight", weights(keys, DIMENSIONS))
        writer.add_tensor(name + "attn_v.weight", weights(keys, DIMENSIONS))
        writer.add_tensor(name + "attn_output.weight", np.zeros((DIMENSIONS, DIMENSIONS), np.float32))
        writer.add_tensor(name + "ffn_norm.weight", ones)
        writer.add_tensor(name + "ffn_gate.weight", weights(INNER, DIMENSIONS))
        writer.add_tensor(name + "ffn_up.weight", weights(INNER, DIMENSIONS))
        writer.add_tensor(name + "ffn_down.weight", np.zeros((DIMENSIONS, INNER), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    folder = sys.argv[1]
    tokens, merges = vocabulary()
    special = ["<|turn|>", "<|end|>"]
    write_vocabulary(os.path.join(folder, "tokenizer"), tokens, merges, special)
    # Last and under its name only when it is whole: it says that both are there.
    path = os.path.join(folder, "tiny.gguf")
    write_model(path + ".new", tokens, merges, special)
    os.rename(path + ".new", path)


if __name__ == "__main__":
    main()
