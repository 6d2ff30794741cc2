(* Turing machines over the paper's tokens, their tapes, and the text of a run.

   A tape is `bos s .. q s .. eos sep`: the state token q stands right of the symbol under the head. On `bos` a machine
   bounces right, on `eos` left; it never halts. Here: the textbook step keeps tapes well formed, so every tape of a
   run has one state token, one separator, and the same length. *)
From Coq Require Import Arith Lia List Bool ZArith.
Require Import Rasp.

Notation sep := 0. Notation bos := 1. Notation eos := 2. Notation empt := 3.

Ltac cases := repeat match goal with
  | |- context [?a =? ?b] => destruct (Nat.eqb_spec a b)
  | H : context [?a =? ?b] |- _ => destruct (Nat.eqb_spec a b)
  end.

Section Machine.
Variable B : nat.                                   (* number of token ids *)
Variables st sym : nat -> bool.                     (* which tokens are states, symbols *)
Variables ns ny : nat -> nat -> nat.                (* next_state, next_symbol, of (state, token) *)
Variable mv : nat -> nat -> bool.                   (* true: right *)
Hypothesis st_range : forall z, st z = true -> 4 <= z < B.
Hypothesis sym_range : forall z, sym z = true -> 4 <= z < B.
Hypothesis st_sym : forall z, st z = true -> sym z = false.
Hypothesis ns_state : forall q a, st q = true -> sym a = true \/ a = bos \/ a = eos -> st (ns q a) = true.
Hypothesis ny_sym : forall q a, st q = true -> sym a = true -> sym (ny q a) = true.
Hypothesis ny_bos : forall q, st q = true -> ny q bos = bos.
Hypothesis ny_eos : forall q, st q = true -> ny q eos = eos.
Hypothesis mv_bos : forall q, st q = true -> mv q bos = true.
Hypothesis mv_eos : forall q, st q = true -> mv q eos = false.

Variable w : nat.                                   (* tokens of a tape and its separator *)
Definition tape := nat -> nat.
Definition last_cell (h : nat) := if h =? w - 2 then w - 3 else w - 2.
Record wf (T : tape) (h : nat) : Prop := {
  wf_w : 4 <= w; wf_h : 1 <= h <= w - 2; wf_st : st (T h) = true;
  wf_bos : T 0 = bos; wf_sep : T (w - 1) = sep; wf_eos : T (last_cell h) = eos;
  wf_sym : forall c, 0 < c < w - 1 -> c <> h -> c <> last_cell h -> sym (T c) = true }.
(* the textbook step: write, change state, move *)
Definition step (T : tape) (h : nat) : tape * nat :=
  let q := T h in let a := T (h - 1) in
  if mv q a
  then (fun c => if c =? h - 1 then ny q a else if c =? h then T (h + 1) else if c =? h + 1 then ns q a else T c, h + 1)
  else (fun c => if c =? h - 1 then ns q a else if c =? h then ny q a else T c, h - 1).

(* ---- tapes stay well formed ------------------------------------------------------------------------------ *)
Lemma st_0 : st 0 = false.
Proof. destruct (st 0) eqn:E; auto. apply st_range in E; lia. Qed.
Lemma st_not_sym z : sym z = true -> st z = false.
Proof. intros H. destruct (st z) eqn:E; auto. apply st_sym in E. congruence. Qed.
Lemma st_small z : z < 4 -> st z = false.
Proof. intros H. destruct (st z) eqn:E; auto. apply st_range in E. lia. Qed.

Lemma wf_under T h : wf T h -> sym (T (h - 1)) = true \/ T (h - 1) = bos \/ T (h - 1) = eos.
Proof.
  intros [Hw Hh Hs Hb Hp He Hy]. destruct (Nat.eq_dec h 1) as [-> | ?]; [right; left; auto |].
  destruct (Nat.eq_dec (h - 1) (last_cell h)) as [E | ?]; [right; right; congruence | left; apply Hy; lia].
Qed.

Lemma wf_not_state T h c : wf T h -> c < w -> c <> h -> st (T c) = false.
Proof.
  intros [Hw Hh Hs Hb Hp He Hy] Hc N. destruct (Nat.eq_dec c 0) as [-> | ?]; [rewrite Hb; apply st_small; lia |].
  destruct (Nat.eq_dec c (w - 1)) as [-> | ?]; [rewrite Hp; apply st_small; lia |].
  destruct (Nat.eq_dec c (last_cell h)) as [-> | ?]; [rewrite He; apply st_small; lia |].
  apply st_not_sym, Hy; lia.
Qed.

Lemma wf_sep_only T h c : wf T h -> c < w -> (T c = 0 <-> c = w - 1).
Proof.
  intros W Hc. destruct W as [Hw Hh Hs Hb Hp He Hy]. split; [| intros ->; auto]. intros Z.
  destruct (Nat.eq_dec c (w - 1)); auto. exfalso.
  destruct (Nat.eq_dec c 0) as [-> | ?]; [lia |].
  destruct (Nat.eq_dec c h) as [-> | ?]; [apply st_range in Hs; lia |].
  destruct (Nat.eq_dec c (last_cell h)) as [-> | ?]; [lia |].
  specialize (Hy c ltac:(lia) ltac:(lia) ltac:(lia)). apply sym_range in Hy. lia.
Qed.

Lemma wf_below T h c : wf T h -> c < w -> T c < B.
Proof.
  intros W Hc. pose proof W as [Hw Hh Hs Hb Hp He Hy]. pose proof (st_range _ Hs).
  destruct (Nat.eq_dec c (w - 1)) as [-> | ?]; [lia |].
  destruct (Nat.eq_dec c 0) as [-> | ?]; [lia |].
  destruct (Nat.eq_dec c h) as [-> | ?]; [lia |].
  destruct (Nat.eq_dec c (last_cell h)) as [-> | ?]; [lia |].
  specialize (Hy c ltac:(lia) ltac:(lia) ltac:(lia)). apply sym_range in Hy. lia.
Qed.

Lemma wf_step T h : wf T h -> wf (fst (step T h)) (snd (step T h)).
Proof.
  intros W. pose proof (wf_under T h W) as U. pose proof W as [Hw Hh Hs Hb Hp He Hy]. unfold step.
  destruct (mv (T h) (T (h - 1))) eqn:M; simpl.
  - assert (N : T (h - 1) <> eos) by (intros E; rewrite E, mv_eos in M by auto; congruence).
    assert (Hn : h <> w - 2).
    { intros ->. apply N. unfold last_cell in He. rewrite Nat.eqb_refl in He. replace (w - 2 - 1) with (w - 3) by lia. auto. }
    assert (L : last_cell h = w - 2) by (unfold last_cell; cases; lia).
    constructor; auto; try lia.
    + cases; try lia. apply ns_state; auto.
    + cases; try lia. replace (h - 1) with 0 in * by lia. rewrite Hb. apply ny_bos; auto.
    + cases; try lia; auto.
    + rewrite L in He. unfold last_cell. clear L. cases; try lia; auto. replace (h + 1) with (w - 2) by lia. auto.
    + intros c Hc Hn1 Hn2. rewrite L in Hy. unfold last_cell in Hn2. clear L He. cases; try lia; try (apply Hy; lia).
      all: apply ny_sym; auto; destruct U as [U | [U | U]]; [exact U | exfalso | contradiction];
        assert (sym (T (h - 1)) = true) as Q by (apply Hy; lia); apply sym_range in Q; lia.
  - assert (N : T (h - 1) <> bos) by (intros E; rewrite E, mv_bos in M by auto; congruence).
    assert (Hn : h <> 1) by (intros ->; apply N; auto).
    constructor; auto; try lia.
    + cases; try lia. apply ns_state; auto.
    + cases; try lia; exact Hb.
    + cases; try lia; exact Hp.
    + unfold last_cell in *. cases; try lia; auto.
      all: subst h; replace (w - 2 - 1) with (w - 3) in * by lia; rewrite He; apply ny_eos; auto.
    + intros c Hc Hn1 Hn2. unfold last_cell in *. cases; try lia; try (apply Hy; lia).
      all: apply ny_sym; auto; destruct U as [U | [U | U]]; [exact U | contradiction | exfalso];
        assert (sym (T (h - 1)) = true) as Q by (apply Hy; lia); apply sym_range in Q; lia.
Qed.

(* ---- the run and its text ---------------------------------------------------------------------------------------- *)
Variable T0 : tape.
Variable h0 : nat.
Hypothesis start : wf T0 h0.
Fixpoint config (t : nat) : tape * nat := match t with 0 => (T0, h0) | S t => step (fst (config t)) (snd (config t)) end.
Definition T (t : nat) : tape := fst (config t).
Definition hd (t : nat) : nat := snd (config t).
Definition trace : sequence := fun p => T (p / w) (p mod w).

Lemma wf_T t : wf (T t) (hd t).
Proof. induction t; [exact start | apply wf_step; exact IHt]. Qed.
Lemma w4 : 4 <= w. Proof. apply (wf_w _ _ start). Qed.
Lemma trace_at t c : c < w -> trace (t * w + c) = T t c.
Proof.
  intros H. unfold trace. pose proof w4. rewrite Nat.div_add_l, Nat.div_small, Nat.add_0_r by lia.
  rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. auto.
Qed.
Lemma split_at p : exists t c, p = t * w + c /\ c < w.
Proof.
  pose proof w4. exists (p / w), (p mod w). split; [rewrite Nat.mul_comm; apply Nat.div_mod; lia |].
  apply Nat.mod_upper_bound; lia.
Qed.

Lemma T_S t c : T (S t) c = let h := hd t in let q := T t h in let a := T t (h - 1) in
  if mv q a then (if c =? h - 1 then ny q a else if c =? h then T t (h + 1) else if c =? h + 1 then ns q a else T t c)
  else (if c =? h - 1 then ns q a else if c =? h then ny q a else T t c).
Proof.
  unfold T at 1. simpl. unfold step. fold (T t) (hd t). destruct (mv (T t (hd t)) (T t (hd t - 1))); reflexivity.
Qed.

Lemma bos_at t : T t 0 = bos. Proof. apply (wf_bos _ _ (wf_T t)). Qed.
Lemma sep_at t : T t (w - 1) = 0. Proof. apply (wf_sep _ _ (wf_T t)). Qed.
End Machine.
