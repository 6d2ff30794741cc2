(* The key as a tuple of tokens: the count of separators and each of the last n+1 tokens for itself, as Python's
   packing="tuple" has it. No number is packed, so none can be too large.

   Its parts are the count and the digits of the hash, and equal hashes are equal digits: so it makes the same
   predictions as the pair of count and hash (`Tuple`), of which the theorems speak. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
Require Import Rasp Machine Program Step Grams Lookup.

(* The n tokens before each, nearest first; what lies before a separator reads 0. *)
Fixpoint tokens_before (n : nat) (before shifted : sequence) : list sequence :=
  match n with
  | 0 => []
  | S n => let before := bor (is_sep shifted) before in
           seq_map shifted before (fun a b => a * (1 - b)) :: tokens_before n before (shift_right shifted 1)
  end.
Definition n_gram (x : sequence) (n : nat) : list sequence := x :: tokens_before n (is_sep x) (shift_right x 1).
Definition token_key (x : sequence) (n : nat) : list sequence := cumsum (is_sep x) :: n_gram x n.

Lemma tokens_before_spec f : forall n i bef sh p,
  (forall p, bef p = flag (negb (alive f p i))) -> (forall p, sh p = if p <? S i then 0 else f (p - S i)) ->
  map (fun s => s p) (tokens_before n bef sh) = map (dig f p) (seq (S i) n).
Proof.
  induction n; intros i bef sh p Hb Hs; simpl; [auto |].
  assert (Hb' : forall q, bor (is_sep sh) bef q = flag (negb (alive f q (S i)))).
  { intros q. unfold bor, is_sep, seq_map, tok_map. rewrite Hb, Hs, alive_S.
    destruct (Nat.ltb_spec q (S i)), (Nat.leb_spec (S i) q); try lia.
    - rewrite andb_false_r. simpl. destruct (alive f q i); reflexivity.
    - destruct (f (q - S i) =? 0), (alive f q i); reflexivity. }
  f_equal.
  - unfold dig. unfold seq_map. rewrite Hb', Hs.
    destruct (alive f p (S i)) eqn:A; simpl flag; [| rewrite Nat.mul_0_r; auto].
    rewrite Nat.mul_1_r. destruct (Nat.ltb_spec p (S i)); auto.
    rewrite alive_S in A. destruct (Nat.leb_spec (S i) p); [lia |]. rewrite andb_false_r in A. discriminate.
  - apply IHn; [exact Hb' |].
    intros q. rewrite shift_spec. destruct (Nat.ltb_spec q 1), (Nat.ltb_spec q (S (S i))); try lia; auto;
      rewrite Hs; destruct (Nat.ltb_spec (q - 1) (S i)); try lia; auto. f_equal; lia.
Qed.

Lemma token_key_spec f n p : map (fun s => s p) (token_key f n) = count f p :: map (dig f p) (seq 0 (S n)).
Proof.
  unfold token_key, n_gram. simpl. f_equal. f_equal; [symmetry; apply dig_0 |].
  apply tokens_before_spec; [| intros q; apply shift_spec].
  intros q. unfold is_sep, tok_map. simpl. destruct (f q =? 0); auto.
Qed.
Lemma token_key_length f g n : length (token_key f n) = length (token_key g n).
Proof.
  assert (L : forall h, length (token_key h n) = 2 + n); [| rewrite !L; auto].
  intros h. rewrite <- (map_length (fun s : sequence => s 0)), token_key_spec. simpl. rewrite map_length, seq_length. auto.
Qed.

(* Equal keys of tokens are equal pairs of count and hash, where all are tokens. *)
Lemma token_key_same B n f g j p : (forall q, f q < B) -> (forall q, g q < B) ->
  (map (fun s => s j) (token_key f n) = map (fun s => s p) (token_key g n) <-> key_at B n Tuple f j = key_at B n Tuple g p).
Proof.
  intros F G. rewrite !token_key_spec. unfold key_at, pack. split; intros E.
  - assert (C : count f j = count g p) by congruence.
    assert (D : map (dig f j) (seq 0 (S n)) = map (dig g p) (seq 0 (S n))) by congruence.
    rewrite C, (H_ext B f g j p n); auto. intros i Hi.
    apply (proj1 map_ext_in_iff D). apply in_seq. lia.
  - injection E as C Hh. f_equal; [auto |]. apply map_ext_in. intros i Hi. apply in_seq in Hi.
    apply H_inj with (B := B) (n := n); auto. lia.
Qed.

Section Tokens.
Variable B : nat.
Variable st : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Hypothesis st_range : forall z, st z = true -> 4 <= z < B.
Hypothesis B4 : 4 <= B.
Hypothesis ns_below : forall q a, ns q a < B.
Hypothesis ny_below : forall q a, ny q a < B.

Definition next_tokens_tuple (n : nat) (x : sequence) : sequence :=
  let key_tape := prefix_fill (next_tape st ns ny mv x 3) 2 empt in
  kqv_max (token_key key_tape n) (token_key x n) (next_tape st ns ny mv x 2) 0.

Theorem next_tokens_of_tokens n x p : (forall q, x q < B) -> next_tokens_tuple n x p = next_tokens B st ns ny mv Tuple n x p.
Proof.
  intros X. unfold next_tokens_tuple, next_tokens. rewrite !kqv_max_0. f_equal. f_equal. unfold matching.
  set (K := prefix_fill (next_tape st ns ny mv x 3) 2 empt).
  assert (KB : forall q, K q < B).
  { intros q. unfold K. rewrite fill_spec. destruct (q <? 2); [lia | apply (next_tape_below B st); auto]. }
  apply filter_ext_in. intros j _. apply eq_true_iff_eq.
  rewrite (same_key_spec (token_key K n)) by apply token_key_length. rewrite (same_key_spec (hash_n_gram_iter B Tuple K n)) by auto.
  rewrite (token_key_same B) by auto. rewrite !key_spec. tauto.
Qed.
End Tokens.
