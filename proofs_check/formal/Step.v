(* One step: `next_tape` is the machine's true step, a fixed number of tokens late.

   Each token of the next tape depends on five cells (`next_tape_five`); on a well-formed tape these five say what the
   textbook step puts there (`five_is_step`); so on the text of a run the value tape and the key tape are that text
   itself, one tape later (`next_tape_trace`). *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program.

Section Step.
Variable B : nat.
Variables st sym : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Hypothesis st_range : forall z, st z = true -> 4 <= z < B.
Notation next_tape := (next_tape st ns ny mv).

(* ---- the next tape looks at five cells ------------------------------------------------------------------- *)
Definition five (a b c d e : nat) : nat :=
  let cn := if st d then ny d c else if st c then ns c b else c in
  let rn := if st e then ny e d else if st d then ns d c else d in
  let ln := if st c then ny c b else if st b then ns b a else b in
  if (st d && negb (mv d c)) || (st c && mv c b) then rn
  else if (st b && mv b a) || (st c && negb (mv c b)) then ln else cn.

Lemma gn_next_spec x xl xr p : gn_next st ns ny x xl xr p =
  if st (xr p) then ny (xr p) (x p) else if st (x p) then ns (x p) (xl p) else x p.
Proof.
  unfold gn_next. rewrite !where_spec. unfold is_state, tok_map, seq_map.
  destruct (st (xr p)), (st (x p)); reflexivity.
Qed.

Definition before (x : sequence) (d p : nat) := if p <? d then 0 else x (p - d).

Lemma next_tape_five x s p : 2 <= s ->
  next_tape x s p = five (before x (s + 2) p) (before x (s + 1) p) (before x s p) (before x (s - 1) p) (before x (s - 2) p).
Proof.
  intros Hs. unfold next_tape, move_head, where3.
  rewrite !where_spec. unfold tok_map. rewrite !where_spec. unfold bor, band, bandnot, seq_map, full.
  rewrite !shift_spec.
  unfold gn_move, band, seq_map. rewrite !gn_next_spec. unfold is_state, tok_map. rewrite !shift_spec.
  fold (before x s p). fold (before x (s + 1) p). fold (before x (s - 1) p). fold (before x (s - 2) p).
  assert (L : forall (y : sequence) v, v = y (p - 1) -> (p < 1 -> v = 0) -> (if p <? 1 then 0 else y (p - 1)) = v)
    by (intros y v -> ?; destruct (Nat.ltb_spec p 1); auto; symmetry; auto).
  assert (E : forall d, 1 <= p -> before x d (p - 1) = before x (d + 1) p).
  { intros d ?. unfold before. destruct (Nat.ltb_spec (p - 1) d), (Nat.ltb_spec p (d + 1)); try lia; auto. f_equal; lia. }
  assert (Z : forall d, 1 <= d -> p < 1 -> before x d p = 0)
    by (intros d ? ?; unfold before; destruct (Nat.ltb_spec p d); auto; lia).
  replace (s + 2) with (s + 1 + 1) by lia.
  destruct (Nat.ltb_spec p 1) as [P | P].
  - rewrite !Z by lia. unfold five. rewrite (st_0 B st st_range). destruct (st (before x (s - 2) p)), (mv 0 0); reflexivity.
  - fold (before x s (p - 1)) (before x (s + 1) (p - 1)) (before x (s - 1) (p - 1)).
    rewrite !E by lia. replace (s - 1 + 1) with s by lia.
    unfold five.
    destruct (st (before x (s + 1) p)), (st (before x s p)), (st (before x (s - 1) p)),
      (mv (before x (s + 1) p) (before x (s + 1 + 1) p)), (mv (before x s p) (before x (s + 1) p)),
      (mv (before x (s - 1) p) (before x s p)); reflexivity.
Qed.

(* Tokens come from tokens: no table, no larger number. *)
Lemma next_tape_below x s q : (forall q a, ns q a < B) -> (forall q a, ny q a < B) -> (forall p, x p < B) -> 2 <= s ->
  next_tape x s q < B.
Proof.
  intros Hns Hny Hx Hs. rewrite next_tape_five by auto. unfold five.
  assert (Z : forall d, before x d q < B) by (intros d; unfold before; destruct (q <? d); [specialize (Hx 0); lia | auto]).
  repeat match goal with |- context [if ?b then _ else _] => destruct b end; auto.
Qed.

(* ---- on the text of a run ---------------------------------------------------------------------------------------- *)
Hypothesis sym_range : forall z, sym z = true -> 4 <= z < B.
Hypothesis st_sym : forall z, st z = true -> sym z = false.
Hypothesis ns_state : forall q a, st q = true -> sym a = true \/ a = bos \/ a = eos -> st (ns q a) = true.
Hypothesis ny_sym : forall q a, st q = true -> sym a = true -> sym (ny q a) = true.
Hypothesis ny_bos : forall q, st q = true -> ny q bos = bos.
Hypothesis ny_eos : forall q, st q = true -> ny q eos = eos.
Hypothesis mv_bos : forall q, st q = true -> mv q bos = true.
Hypothesis mv_eos : forall q, st q = true -> mv q eos = false.
Variable w : nat.
Variable T0 : nat -> nat.
Variable h0 : nat.
Hypothesis start : wf st sym w T0 h0.
Notation T := (T ns ny mv T0 h0).
Notation hd := (hd ns ny mv T0 h0).
Notation trace := (trace ns ny mv w T0 h0).
Let wf_T t : wf st sym w (T t) (hd t). Proof. eapply Machine.wf_T; eassumption. Qed.
Let w4 : 4 <= w. Proof. apply (wf_w _ _ _ _ _ start). Qed.
Let trace_at t c : c < w -> trace (t * w + c) = T t c. Proof. eapply Machine.trace_at; eassumption. Qed.
Let split_at p : exists t c, p = t * w + c /\ c < w. Proof. eapply Machine.split_at; eassumption. Qed.
Let bos_at t : T t 0 = bos. Proof. apply (wf_bos _ _ _ _ _ (wf_T t)). Qed.
Let sep_at t : T t (w - 1) = 0. Proof. apply (wf_sep _ _ _ _ _ (wf_T t)). Qed.
Let st_0 : st 0 = false. Proof. eapply Machine.st_0; eassumption. Qed.
Let st_small z : z < 4 -> st z = false. Proof. eapply Machine.st_small; eassumption. Qed.

Lemma five_is_step t c a b d e : c < w ->
  (2 <= c -> a = T t (c - 2)) -> (1 <= c -> b = T t (c - 1)) -> (c = 0 -> b = 0) ->
  (c + 1 < w -> d = T t (c + 1)) -> (c + 1 = w -> d = bos) ->
  (c + 2 < w -> e = T t (c + 2)) -> (c + 2 = w -> e = bos) ->
  five a b (T t c) d e = T (S t) c.
Proof.
  intros Hc Ha Hb Hb0 Hd Hd1 He He1. pose proof (wf_T t) as W. pose proof W as [Hw Hh Hs HB Hp HE Hy].
  rewrite T_S. cbv zeta. set (h := hd t) in *.
  assert (NS : forall c, c < w -> c <> h -> st (T t c) = false) by (intros; eapply wf_not_state; eassumption).
  assert (Nb : c <> h + 1 -> st b = false).
  { intros. destruct (Nat.eq_dec c 0); [rewrite Hb0 by auto; apply st_0 | rewrite Hb by lia; apply NS; lia]. }
  assert (Nd : c + 1 <> h -> st d = false).
  { intros. destruct (Nat.eq_dec (c + 1) w); [rewrite Hd1 by auto; apply st_small; lia | rewrite Hd by lia; apply NS; lia]. }
  assert (Ne : c = h \/ c + 1 = h -> st e = false).
  { intros. destruct (Nat.eq_dec (c + 2) w); [rewrite He1 by auto; apply st_small; lia | rewrite He by lia; apply NS; lia]. }
  unfold five.
  destruct (Nat.eq_dec c h) as [-> | C0].
  { rewrite Hs, Nb, Nd, Ne by lia. rewrite Hb by lia. simpl.
    destruct (mv (T t h) (T t (h - 1))); simpl; cases; try lia; auto. all: apply Hd; lia. }
  destruct (Nat.eq_dec (c + 1) h) as [C1 | C1].
  { rewrite (NS c), Nb, Ne by lia. rewrite Hd, C1, Hs by lia. replace (h - 1) with c by lia. simpl.
    destruct (mv (T t h) (T t c)); simpl; cases; try lia; auto. }
  destruct (Nat.eq_dec c (h + 1)) as [C2 | C2].
  { rewrite (NS c), Nd by lia. rewrite Hb, Ha by lia. replace (c - 1) with h by lia. replace (c - 2) with (h - 1) by lia.
    rewrite Hs. simpl. destruct (mv (T t h) (T t (h - 1))); simpl; cases; try lia; auto. }
  rewrite (NS c), Nb, Nd by lia. simpl. destruct (mv (T t h) (T t (h - 1))); cases; try lia; auto.
Qed.

(* the value tape, and the key tape, are the text one tape later *)
Lemma next_tape_trace s p : 2 <= s -> s <= p -> next_tape trace s p = trace (p - s + w).
Proof.
  intros Hs Hp. rewrite next_tape_five by auto. pose proof w4.
  destruct (split_at (p - s)) as (t & c & E & Hc).
  replace (p - s + w) with (S t * w + c) by (simpl; lia). rewrite trace_at by auto.
  assert (BE : forall d k, d <= p -> p - d = k -> before trace d p = trace k)
    by (intros d k ? <-; unfold before; destruct (Nat.ltb_spec p d); auto; lia).
  rewrite (BE s (t * w + c)), trace_at by lia.
  apply five_is_step; auto; intros.
  - rewrite (BE (s + 2) (t * w + (c - 2))) by nia. apply trace_at; lia.
  - rewrite (BE (s + 1) (t * w + (c - 1))) by nia. apply trace_at; lia.
  - subst c. destruct t as [| t].
    + unfold before. destruct (Nat.ltb_spec p (s + 1)); auto; lia.
    + rewrite (BE (s + 1) (t * w + (w - 1))) by nia. rewrite trace_at by lia. apply sep_at.
  - rewrite (BE (s - 1) (t * w + (c + 1))) by nia. apply trace_at; lia.
  - rewrite (BE (s - 1) (S t * w + 0)) by nia. rewrite trace_at by lia. apply bos_at.
  - rewrite (BE (s - 2) (t * w + (c + 2))) by nia. apply trace_at; lia.
  - rewrite (BE (s - 2) (S t * w + 0)) by nia. rewrite trace_at by lia. apply bos_at.
Qed.

Lemma next_tape_early s p : 2 <= s -> p < s -> next_tape trace s p = 0.
Proof.
  intros Hs Hp. rewrite next_tape_five by auto. unfold before.
  destruct (Nat.ltb_spec p (s + 2)), (Nat.ltb_spec p (s + 1)), (Nat.ltb_spec p s); try lia.
  assert (D : (if p <? s - 1 then 0 else trace (p - (s - 1))) < 2).
  { destruct (Nat.ltb_spec p (s - 1)); [lia |]. replace (p - (s - 1)) with (0 * w + 0) by lia.
    pose proof w4. rewrite trace_at, bos_at by lia. lia. }
  unfold five. rewrite st_0, (st_small _ (Nat.lt_trans _ 2 4 D ltac:(lia))). reflexivity.
Qed.
End Step.
