(* Packing: when do two places have the same key?

   A key holds how many separators came before (which tape) and the gram. As a pair, or packed with the count on top, equal
   keys are equal counts and equal grams. In the paper's packing the count lies below the gram, so that is true only of
   counts less than B^n apart (`pack_inj`): this is where the bound on the number of steps comes from. *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Grams Lookup.

Lemma pack_inj B n k c h c' h' : 2 <= B -> h < B ^ (n + 1) -> h' < B ^ (n + 1) ->
  (k = Paper -> c < c' + B ^ n /\ c' < c + B ^ n) -> pack B n k c h = pack B n k c' h' -> c = c' /\ h = h'.
Proof.
  intros HB Hh Hh' Hk E. destruct k; simpl in E; injection E; clear E; intros; auto.
  - specialize (Hk eq_refl). assert (h = h') by nia. nia.
  - set (M := B ^ (n + 1)) in *. assert (c = c') by nia. nia.
Qed.

Lemma power_2 B n : 2 <= B -> 1 <= n -> 2 <= B ^ n.
Proof.
  intros. replace 2 with (2 ^ 1) by reflexivity.
  apply Nat.le_trans with (2 ^ n); [apply Nat.pow_le_mono_r; lia | apply Nat.pow_le_mono_l; lia].
Qed.

Section Packing.
Variables B w n : nat.
Variable k : packing.
Variable T : nat -> nat -> nat.
Variable x : sequence.
Hypothesis w4 : 4 <= w.
Hypothesis n1 : 1 <= n.
Hypothesis B2 : 2 <= B.
Hypothesis x_at : forall t c, c < w -> x (t * w + c) = T t c.
Hypothesis below : forall t c, c < w -> T t c < B.
Hypothesis sep_only : forall t c, c < w -> (T t c = 0 <-> c = w - 1).
Notation key := (key_at B n k).
Let x_below p : x p < B. Proof. eapply Lookup.x_below; eassumption. Qed.
Let count_x p : count x p * w <= p + 1 < (count x p + 1) * w. Proof. eapply Lookup.count_x; eassumption. Qed.

(* Within the bound, equal keys are equal grams of one tape. *)
Lemma key_inj i j : (k = Paper -> count x i < count x j + B ^ n /\ count x j < count x i + B ^ n) -> key x j = key x i ->
  count x j = count x i /\ forall m, m <= n -> dig x j m = dig x i m.
Proof.
  intros Hb E. destruct (pack_inj B n k (count x j) (H B x j n) (count x i) (H B x i n)) as [C G]; auto using H_below.
  - intros P. specialize (Hb P). lia.
  - split; auto. apply H_inj with (B := B); auto.
Qed.

(* The next tape never has the key of this one, in any packing: counts one apart cannot collide. *)
Lemma key_next i j : j <= i + w - 3 -> key x j = key x i -> count x j <= count x i.
Proof.
  intros Hj E. pose proof (count_x i). pose proof (count_x j). pose proof (power_2 B n B2 n1).
  assert (C : count x j <= count x i + 1) by nia.
  destruct (Nat.eq_dec (count x j) (count x i + 1)) as [N |]; [| lia].
  destruct (key_inj i j) as [A _]; auto; lia.
Qed.

Lemma key_same i j : count x j = count x i -> (forall m, m <= n -> dig x j m = dig x i m) -> key x j = key x i.
Proof. intros C D. unfold key_at. rewrite C, (H_ext B x x j i) by auto. auto. Qed.

(* On one tape, equal keys at two places are an (n+1)-gram of that tape that occurs twice. *)
Lemma twin_cells t c d : c < w - 1 -> d < w - 1 -> c <> d ->
  (forall m, m <= n -> dig x (S t * w + d) m = dig x (S t * w + c) m) ->
  n <= c /\ n <= d /\ forall m, m <= n -> T (S t) (d - m) = T (S t) (c - m).
Proof.
  intros Hc Hd Ncd D.
  assert (DT : forall m, m <= n -> (if m <=? d then T (S t) (d - m) else 0) = (if m <=? c then T (S t) (c - m) else 0)).
  { intros m Hm. specialize (D m Hm). erewrite !dig_tape in D by (try eassumption; auto). exact D. }
  assert (NZ : forall e, e < w - 1 -> T (S t) e <> 0) by (intros e He Z; apply sep_only in Z; lia).
  assert (n <= c).
  { destruct (Nat.le_gt_cases n c); auto. exfalso. destruct (Nat.lt_ge_cases c d).
    - specialize (DT (c + 1) ltac:(lia)). destruct (Nat.leb_spec (c + 1) d), (Nat.leb_spec (c + 1) c); try lia.
      apply (NZ (d - (c + 1))); lia.
    - specialize (DT (d + 1) ltac:(lia)). destruct (Nat.leb_spec (d + 1) d), (Nat.leb_spec (d + 1) c); try lia.
      apply (NZ (c - (d + 1))); lia. }
  assert (n <= d).
  { destruct (Nat.le_gt_cases n d); auto. exfalso.
    specialize (DT n ltac:(lia)). destruct (Nat.leb_spec n d), (Nat.leb_spec n c); try lia. apply (NZ (c - n)); lia. }
  repeat split; auto. intros m Hm. specialize (DT m Hm).
  destruct (Nat.leb_spec m d), (Nat.leb_spec m c); try lia.
Qed.

(* The separator and the places of its tape never share a key with one another. *)
Lemma sep_alone t j : key x j = key x (t * w + (w - 1)) -> count x j = t + 1 -> j = t * w + (w - 1).
Proof.
  intros E C. assert (Ci : count x (t * w + (w - 1)) = t + 1) by (pose proof (count_x (t * w + (w - 1))); nia).
  destruct (key_inj (t * w + (w - 1)) j) as [_ D]; [pose proof (power_2 B n B2 n1); intros; lia | auto |].
  specialize (D 0 ltac:(lia)). erewrite dig_sep, dig_0 in D by eassumption.
  assert (U : exists u, j + 1 = (u + 1) * w) by (eapply x_sep; eassumption). destruct U as (u & U). pose proof (count_x j). assert (u = t) by nia. subst. nia.
Qed.
End Packing.
