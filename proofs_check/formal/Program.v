(* The program printed in the paper, definition by definition (rasp: get_next, move_head, next_tape, hash_n_gram,
   hash_n_gram_iter, next_tokens), for any machine and any n, with the three packings of its keys.

   `Graph.v` has the same program as the graph that Python traces; `Words.v` shows that running the graph gives this. *)
From Coq Require Import Arith List Bool.
Import ListNotations.
Require Import Rasp Machine.

Inductive packing := Paper | Unbounded | Tuple.

Section Program.
Variable B : nat.
Variable st : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.

(* ---- the next tape ----------------------------------------------------------------------------------------------- *)
Definition is_state (x : sequence) := tok_map x (fun z => flag (st z)).
Definition gn_next (x xl xr : sequence) : sequence :=
  where_ (is_state xr) (seq_map xr x ny) (where_ (is_state x) (seq_map x xl ns) x).
Definition gn_move (x xl : sequence) : sequence := band (seq_map x xl (fun q a => flag (mv q a))) (is_state x).
Definition move_head (h cn m rh rn rm : sequence) : sequence :=
  let lh := shift_right h 1 in let ln := shift_right cn 1 in let lm := shift_right m 1 in
  let out := where_ (bor (band lh lm) (bandnot h m)) (full 0) (full 1) in
  let out := where_ (bor (bandnot rh rm) (band h m)) (full 2) out in
  where3 out ln cn rn.
Definition next_tape (x : sequence) (s : nat) : sequence :=
  let x0 := shift_right x s in let xl := shift_right x (s + 1) in
  let xr := shift_right x (s - 1) in let xrr := shift_right x (s - 2) in
  move_head (is_state x0) (gn_next x0 xl xr) (gn_move x0 xl)
            (is_state xr) (gn_next xr x0 xrr) (gn_move xr x0).

(* ---- keys: the last n+1 tokens and the number of separators before them -------------------------------------------- *)
Fixpoint hash_loop (n : nat) (out before shifted : sequence) : sequence :=
  match n with
  | 0 => out
  | S n => let before := bor (is_sep shifted) before in
           let to_add := seq_map shifted before (fun a b => a * (1 - b)) in
           hash_loop n (seq_map out to_add (fun a b => b + B * a)) before (shift_right shifted 1)
  end.
Definition hash_n_gram (x : sequence) (n : nat) := hash_loop n x (is_sep x) (shift_right x 1).

(* The key as one number in the paper's packing (the count below the gram, which it may run into), as one number with the
   count above the gram, or as a pair. *)
Definition hash_n_gram_iter (k : packing) (x : sequence) (n : nat) : list sequence :=
  match k with
  | Paper => [seq_map (cumsum (is_sep x)) (hash_n_gram x n) (fun a b => a + B ^ n * b)]
  | Unbounded => [seq_map (cumsum (is_sep x)) (hash_n_gram x n) (fun a b => b + B ^ (n + 1) * a)]
  | Tuple => [cumsum (is_sep x); hash_n_gram x n]
  end.

Definition next_tokens (k : packing) (n : nat) (x : sequence) : sequence :=
  let key_tape := prefix_fill (next_tape x 3) 2 empt in
  kqv_max (hash_n_gram_iter k key_tape n) (hash_n_gram_iter k x n) (next_tape x 2) 0.
End Program.
