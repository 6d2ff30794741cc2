(* The bound on the paper's packing is exact: for every n there is a machine and a tape that never repeats an (n+1)-gram
   on which the program is right through tape B^n and wrong on tape B^n + 1.

   The witness, with symbols 4 5 6 7 and state 8 (so B = 9): the head goes to and fro over the 7 of
   `bos 7 4 6..6 4 5 6..6 5 eos`, where 6..6 is n times 6. After `4 6..6` comes 4, after `5 6..6` comes 5. As numbers the
   two grams differ by one, so B^n tapes apart their keys are the same number, and the larger successor wins. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
Require Import Rasp Machine Program Step Grams Lookup Packing Sharp Horizon.

Definition sym z := (4 <=? z) && (z <? 8).
Definition st z := z =? 8.
Definition ns (q a : nat) := 8.
Definition ny (q a : nat) := a.
Definition mv (q a : nat) := a =? bos.

Section Collision.
Variable n : nat.
Hypothesis n1 : 1 <= n.
Definition width := 9 + 2 * n.
(* what follows the first three tokens, and the two tapes: head on bos, and on the 7 *)
Definition tail (c : nat) : nat :=
  if c =? 3 then 4 else if c <=? 3 + n then 6 else if c =? 4 + n then 4 else if c =? 5 + n then 5
  else if c <=? 5 + 2 * n then 6 else if c =? 6 + 2 * n then 5 else if c =? 7 + 2 * n then eos else sep.
Definition tape_of (right : bool) (c : nat) : nat :=
  match c with 0 => bos | 1 => if right then 7 else 8 | 2 => if right then 8 else 7 | _ => tail c end.
Notation T := (T ns ny mv (tape_of false) 1).
Notation trace := (trace ns ny mv width (tape_of false) 1).

Ltac split_tail := unfold tail in *; repeat (match goal with
  | |- context [?a =? ?b] => destruct (Nat.eqb_spec a b)
  | |- context [?a <=? ?b] => destruct (Nat.leb_spec a b)
  | H : context [?a =? ?b] |- _ => destruct (Nat.eqb_spec a b)
  | H : context [?a <=? ?b] |- _ => destruct (Nat.leb_spec a b)
  end; try (exfalso; lia)); try lia.

Lemma start : wf st sym width (tape_of false) 1.
Proof.
  unfold width. constructor; try reflexivity; try lia.
  - replace (9 + 2 * n - 1) with (S (S (S (5 + 2 * n)))) by lia. unfold tape_of. split_tail.
  - unfold last_cell. destruct (Nat.eqb_spec 1 (9 + 2 * n - 2)); [lia |].
    replace (9 + 2 * n - 2) with (S (S (S (4 + 2 * n)))) by lia. unfold tape_of. split_tail.
  - intros c Hc H1 H2. unfold last_cell in H2. destruct (Nat.eqb_spec 1 (9 + 2 * n - 2)); [lia |].
    destruct c as [| [| [| c]]]; try lia; [reflexivity |].
    unfold tape_of, sym. split_tail; reflexivity.
Qed.

(* The head goes to and fro, and nothing else ever changes. *)
Lemma config_even t : forall c, T t c = tape_of (Nat.odd t) c /\ hd ns ny mv (tape_of false) 1 t = 1 + flag (Nat.odd t).
Proof.
  induction t as [| t IH]; intros c; [split; reflexivity |].
  destruct (IH 0) as [_ Hh]. rewrite Nat.odd_succ, <- Nat.negb_odd. split.
  - rewrite T_S. cbv zeta. rewrite Hh. destruct (Nat.odd t) eqn:O; simpl flag; simpl plus; simpl minus;
      rewrite !(proj1 (IH _)); unfold tape_of at 1 2, mv; simpl Nat.eqb; simpl negb; cbv iota;
      destruct c as [| [| [| c]]]; reflexivity.
  - unfold hd. simpl. unfold step. fold (T t) (hd ns ny mv (tape_of false) 1 t). rewrite Hh.
    destruct (Nat.odd t) eqn:O; simpl flag; simpl plus; simpl minus; rewrite !(proj1 (IH _)); reflexivity.
Qed.
Lemma tape_at t c : T t c = tape_of (Nat.odd t) c.
Proof. apply config_even. Qed.
Lemma tail_at t c : 3 <= c -> T t c = tail c.
Proof. intros Hc. rewrite tape_at. destruct c as [| [| [| c]]]; try lia. reflexivity. Qed.

Lemma early_only c r : c < width -> tape_of r c = bos -> c = 0.
Proof. unfold width. destruct c as [| [| [| c]]]; auto; unfold tape_of; destruct r; try lia; split_tail. Qed.
Lemma state_only c r : c < width -> tape_of r c = 8 -> c = 1 + flag r.
Proof. unfold width. destruct c as [| [| [| c]]]; auto; unfold tape_of; destruct r; try (simpl; lia); split_tail. Qed.
Lemma seven_only c r : c < width -> tape_of r c = 7 -> c = 2 - flag r.
Proof. unfold width. destruct c as [| [| [| c]]]; auto; unfold tape_of; destruct r; try (simpl; lia); split_tail. Qed.

Theorem never_repeats t : ~ repeats_gram ns ny mv width (tape_of false) 1 n t.
Proof.
  intros (a & b & Hab & Hb & E). unfold width in Hb. pose proof (E 0 ltac:(lia)) as E0. rewrite !Nat.add_0_r in E0.
  destruct (Nat.lt_ge_cases a 3) as [Ha | Ha].
  - rewrite !tape_at in E0. set (r := Nat.odd t) in *.
    assert (a = 0 \/ a = 1 + flag r \/ a = 2 - flag r) as [A | [A | A]] by (destruct r; simpl; lia);
      rewrite A in E0, Hab; symmetry in E0.
    + assert (b = 0) by (apply (early_only b r); [unfold width; lia | exact E0]). lia.
    + assert (b = 1 + flag r) by (apply (state_only b r); [unfold width; lia | rewrite E0; destruct r; reflexivity]). lia.
    + assert (b = 2 - flag r) by (apply (seven_only b r); [unfold width; lia | rewrite E0; destruct r; reflexivity]). lia.
  - assert (E' : forall m, m <= n -> tail (a + m) = tail (b + m)).
    { intros m Hm. rewrite <- !(tail_at t) by lia. auto. }
    destruct (Nat.eq_dec a 3) as [-> | N3].
    { assert (tail b = 4) by (rewrite <- (Nat.add_0_r b), <- E' by lia; reflexivity).
      assert (b = 4 + n) by split_tail. subst b. specialize (E' 1 n1). split_tail. }
    destruct (Nat.le_gt_cases a (4 + n)) as [Le | Gt].
    { specialize (E' (4 + n - a) ltac:(lia)). replace (a + (4 + n - a)) with (4 + n) in E' by lia. split_tail. }
    destruct (Nat.eq_dec a (5 + n)) as [-> | N5].
    { pose proof (E' 0 ltac:(lia)) as Z. pose proof (E' 1 n1). split_tail. }
    specialize (E' n ltac:(lia)). assert (a = 6 + n /\ b = 7 + n) as [-> ->] by lia. split_tail.
Qed.

(* The gram `4 6..6` of tape 9^n + 1 is outbid by the gram `5 6..6` of tape 1. *)
Lemma collide : outbid 9 ns ny mv width (tape_of false) 1 Paper n ((9 ^ n + 1) * width + (3 + n)).
Proof.
  pose proof start as W. set (M := 9 ^ n).
  assert (AT : forall t c, c < width -> trace (t * width + c) = T t c) by (intros; eapply trace_at; eassumption).
  assert (SEP : forall t c, c < width -> (T t c = 0 <-> c = width - 1)).
  { intros t c. rewrite tape_at. unfold width. destruct c as [| [| [| c]]]; unfold tape_of; destruct (Nat.odd t); try lia; split_tail. }
  assert (COUNT : forall t c, c < width - 1 -> count trace (t * width + c) = t).
  { intros t c Hc. pose proof (count_x 9 width n T trace ltac:(unfold width; lia) n1 ltac:(lia) AT SEP (t * width + c)). nia. }
  assert (DIG : forall t c m, c < width - 1 -> m + 3 <= c -> dig trace (S t * width + c) m = tail (c - m)).
  { intros t c m Hc Hm. rewrite (dig_tape 9 width n T trace) by (auto; unfold width; lia).
    destruct (Nat.leb_spec m c); [| lia]. apply tail_at. lia. }
  exists (1 * width + (5 + 2 * n)). repeat split.
  - lia.
  - rewrite !COUNT by (unfold width; lia). unfold M. lia.
  - unfold key_at, pack. rewrite !COUNT by (unfold width; lia). fold M. f_equal.
    replace (M + 1) with (S M) by lia.
    assert (HN : forall t c, c < width - 1 -> n + 3 <= c -> H 9 trace (S t * width + c) n
      = tail (c - n) + 9 * H 9 trace (S t * width + c) (n - 1)).
    { intros t c Hc Hn. replace n with (S (n - 1)) at 1 by lia. simpl H. rewrite <- DIG with (t := t) by lia.
      replace (S (n - 1)) with n by lia. reflexivity. }
    rewrite !HN by (unfold width; lia).
    assert (H 9 trace (1 * width + (5 + 2 * n)) (n - 1) = H 9 trace (S M * width + (3 + n)) (n - 1)) as ->.
    { apply H_ext. intros i Hi. rewrite !DIG by (unfold width; lia). split_tail. }
    replace (tail (5 + 2 * n - n)) with 5 by split_tail. replace (tail (3 + n - n)) with 4 by split_tail. nia.
  - rewrite <- !Nat.add_assoc, !AT by (unfold width; lia). rewrite !tail_at by lia. split_tail.
Qed.

Ltac side := unfold st, sym, ns, ny, mv in *; intros;
  repeat match goal with
  | H : (_ =? _) = true |- _ => apply Nat.eqb_eq in H
  | H : _ && _ = true |- _ => apply andb_prop in H as [?%Nat.leb_le ?%Nat.ltb_lt]
  end; subst; try lia; try reflexivity; auto.

(* Right through tape 9^n, wrong on the next: the bound is exact. With the count on top, or a pair, right for ever. *)
Theorem bound_is_exact g :
  (forall p, p < width -> g p = trace p) -> (forall p, width - 1 <= p -> g (p + 1) = next_tokens 9 st ns ny mv Paper n g p) ->
  (forall p, p < (9 ^ n + 1) * width -> g p = trace p) /\ ~ (forall p, p < (9 ^ n + 2) * width -> g p = trace p).
Proof.
  intros G0 G. split.
  - apply (sharp 9 st sym ns ny mv) with (k := Paper) (n := n); auto using start; try (side; fail).
    intros s _. apply never_repeats.
  - intros A. apply (right_through 9 st sym ns ny mv) with (w := width) (T0 := tape_of false) (h0 := 1) (k := Paper) (n := n)
      (g := g) (P := (9 ^ n + 2) * width - 1) (i := (9 ^ n + 1) * width + (3 + n)); auto using start, collide; try (side; fail).
    + intros p Hp. apply A. unfold width in *. lia.
    + unfold width. nia.
Qed.

Theorem others_never_fail k t g : k <> Paper ->
  (forall p, p < width -> g p = trace p) -> (forall p, width - 1 <= p -> g (p + 1) = next_tokens 9 st ns ny mv k n g p) ->
  forall p, p < (t + 1) * width -> g p = trace p.
Proof.
  intros NP G0 G. apply (sharp 9 st sym ns ny mv) with (k := k) (n := n); auto using start; try (side; fail).
  - intros ->. contradiction.
  - intros s _. apply never_repeats.
Qed.
End Collision.
