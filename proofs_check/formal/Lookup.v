(* The look-up: what the program predicts on a text that is one tape after another, each ending in a separator.

   The key tape and the value tape are the text itself, one tape later (`Step.v`), so the look-up at place i finds,
   among others, its own place on the next tape, whose value is the right token. The prediction is the LARGEST value found:
   it is right exactly where no place with the same key is followed by a larger token (`out_spec`). *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Grams.

(* ---- keys as values ---------------------------------------------------------------------------------------------- *)
(* The key of a place with this many separators and this gram. *)
Definition pack (B n : nat) (k : packing) (c h : nat) : list nat :=
  match k with Paper => [c + B ^ n * h] | Unbounded => [h + B ^ (n + 1) * c] | Tuple => [c; h] end.
Definition key_at (B n : nat) (k : packing) (f : sequence) (p : nat) : list nat := pack B n k (count f p) (H B f p n).

Lemma key_spec B n k f p : map (fun s => s p) (hash_n_gram_iter B k f n) = key_at B n k f p.
Proof.
  unfold key_at, pack, hash_n_gram_iter. destruct k; unfold map, seq_map; fold (count f p); rewrite ?hash_spec; auto.
Qed.

Lemma same_key_spec ks qs j p : length ks = length qs ->
  (same_key ks qs j p = true <-> map (fun s => s j) ks = map (fun s => s p) qs).
Proof.
  unfold same_key. revert qs. induction ks; destruct qs; simpl; intros E; try discriminate; [tauto |].
  rewrite andb_true_iff, Nat.eqb_eq, IHks by lia. split; [intros [-> ->]; auto | intros F; injection F; auto].
Qed.

Lemma matching_spec B n k f g j p :
  In j (matching (hash_n_gram_iter B k f n) (hash_n_gram_iter B k g n) p) <-> j <= p /\ key_at B n k f j = key_at B n k g p.
Proof.
  unfold matching. rewrite filter_In, in_seq, same_key_spec, !key_spec by (destruct k; auto). intuition lia.
Qed.

(* ---- the look-up ------------------------------------------------------------------------------------------------- *)
Section Lookup.
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
Variables K V : sequence.
Hypothesis K_early : forall p, p < 2 -> K p = 3.
Hypothesis K_late : forall p, 2 <= p -> K p = x (p + w - 3).
Hypothesis V_early : forall p, p < 2 -> V p = 0.
Hypothesis V_late : forall p, 2 <= p -> V p = x (p + w - 2).
Notation key := (key_at B n k).
Definition out : sequence := kqv_max (hash_n_gram_iter B k K n) (hash_n_gram_iter B k x n) V 0.

Lemma split p : exists t c, p = t * w + c /\ c < w.
Proof.
  exists (p / w), (p mod w). split; [rewrite Nat.mul_comm; apply Nat.div_mod; lia | apply Nat.mod_upper_bound; lia].
Qed.
Lemma x_below p : x p < B.
Proof. destruct (split p) as (t & c & -> & Hc). rewrite x_at by auto. auto. Qed.
Lemma x_sep p : x p = 0 <-> exists t, p + 1 = (t + 1) * w.
Proof.
  destruct (split p) as (t & c & -> & Hc). rewrite x_at, sep_only by auto. split.
  - intros ->. exists t. nia.
  - intros (u & E). assert (u = t) by nia. subst. nia.
Qed.

Lemma count_x p : count x p * w <= p + 1 < (count x p + 1) * w.
Proof.
  induction p.
  - rewrite count_0. destruct (Nat.eqb_spec (x 0) 0) as [E | E]; simpl; [| lia].
    apply x_sep in E as (t & E). nia.
  - rewrite count_S. set (c := count x p) in *. destruct (Nat.eqb_spec (x (S p)) 0) as [E | E]; simpl flag.
    + apply x_sep in E as (t & E). assert (t = c) by nia. subst. nia.
    + assert (S p + 1 <> (c + 1) * w) by (intros F; apply E, x_sep; exists c; lia). nia.
Qed.
Lemma count_block t c : c < w -> count x (t * w + w - 1 + c) = t + 1.
Proof. intros Hc. pose proof (count_x (t * w + w - 1 + c)). nia. Qed.

Lemma count_K p : 2 <= p -> count K p = count x (p + w - 3).
Proof.
  intros Hp. replace p with (p - 2 + 2) by lia. set (m := p - 2). clearbody m. clear p Hp. induction m.
  - replace (0 + 2) with 2 by lia. rewrite !count_S, count_0. rewrite (K_early 0), (K_early 1), (K_late 2) by lia.
    replace (2 + w - 3) with (0 * w + w - 1 + 0) by lia. rewrite count_block by lia.
    replace (0 * w + w - 1 + 0) with (0 * w + (w - 1)) by lia. rewrite x_at by lia.
    assert (T 0 (w - 1) = 0) as -> by (apply sep_only; lia). reflexivity.
  - replace (S m + 2) with (S (m + 2)) by lia. rewrite count_S, IHm, K_late by lia.
    replace (S (m + 2) + w - 3) with (S (m + 2 + w - 3)) by lia. rewrite count_S. auto.
Qed.

Lemma alive_K p i : 2 <= p -> alive K p i = alive x (p + w - 3) i /\ (alive K p i = true -> i + 2 <= p).
Proof.
  intros Hp. induction i.
  - simpl. rewrite K_late by auto. split; auto.
  - destruct IHi as [E L]. rewrite !alive_S, <- E. destruct (alive K p i) eqn:A; [| split; [auto | discriminate]].
    specialize (L eq_refl).
    assert ((S i <=? p) = true) as -> by (apply Nat.leb_le; lia).
    assert ((S i <=? p + w - 3) = true) as -> by (apply Nat.leb_le; lia). rewrite !andb_true_l.
    destruct (Nat.eq_dec (i + 2) p) as [<- | ?].
    + (* would step off the first separator: but that is where the chain ends *)
      exfalso. apply (alive_nonzero _ _ _ A). replace (i + 2 - i) with 2 by lia. rewrite K_late by lia.
      replace (2 + w - 3) with (0 * w + (w - 1)) by lia. rewrite x_at by lia. apply sep_only; lia.
    + rewrite K_late by lia. replace (p - S i + w - 3) with (p + w - 3 - S i) by lia. split; auto. intros; lia.
Qed.
Lemma dig_K p i : 2 <= p -> dig K p i = dig x (p + w - 3) i.
Proof.
  intros Hp. unfold dig. destruct (alive_K p i Hp) as [E L]. rewrite E in *.
  destruct (alive x (p + w - 3) i) eqn:A; auto. specialize (L eq_refl).
  rewrite K_late by lia. f_equal. lia.
Qed.
Lemma key_K p : 2 <= p -> key K p = key x (p + w - 3).
Proof. intros Hp. unfold key_at. rewrite count_K, (H_ext B K x p (p + w - 3)) by auto using dig_K. auto. Qed.

(* The prediction at i is the largest token that follows its key on the text from the first separator to i + w - 3. *)
Lemma out_le i m : w - 1 <= i ->
  (out i <= m <-> forall j, w - 1 <= j <= i + w - 3 -> key x j = key x i -> x (j + 1) <= m).
Proof.
  intros Hi. unfold out. rewrite kqv_max_0. set (l := matching _ _ i).
  assert (L : forall j, In j l <-> j <= i /\ key K j = key x i) by (intros j; apply matching_spec). split.
  - intros E j Hj Kj. apply Nat.le_trans with (2 := E).
    replace (x (j + 1)) with (V (j + 3 - w)) by (rewrite V_late by lia; f_equal; lia).
    apply le_max, in_map, L. split; [lia |]. rewrite key_K by lia. rewrite <- Kj. f_equal; lia.
  - intros A. apply max_le. intros v Hv. apply in_map_iff in Hv as (j & <- & Hj). apply L in Hj as [Hj Kj].
    destruct (Nat.lt_ge_cases j 2); [rewrite V_early by auto; lia |].
    rewrite V_late by auto. replace (j + w - 2) with (j + w - 3 + 1) by lia. apply A; [lia |].
    rewrite <- key_K; auto.
Qed.

Lemma out_ge i : w - 1 <= i -> x (i + 1) <= out i.
Proof. intros Hi. apply (proj1 (out_le i (out i) Hi) (le_n _) i); auto; lia. Qed.

Lemma out_spec i : w - 1 <= i ->
  (out i = x (i + 1) <-> forall j, w - 1 <= j <= i + w - 3 -> key x j = key x i -> x (j + 1) <= x (i + 1)).
Proof. intros Hi. rewrite <- out_le by auto. pose proof (out_ge i Hi). lia. Qed.

(* ---- places on tapes --------------------------------------------------------------------------------------------- *)
Lemma alive_tape t c i : c < w - 1 -> alive x (S t * w + c) i = (i <=? c).
Proof.
  intros Hc. induction i.
  - simpl alive. replace (w + t * w + c) with (S t * w + c) by (simpl; lia). rewrite x_at by lia.
    destruct (Nat.eqb_spec (T (S t) c) 0) as [E | E]; auto. apply sep_only in E; lia.
  - rewrite alive_S, IHi. destruct (Nat.leb_spec (S i) c) as [L | L].
    + assert ((i <=? c) = true) as -> by (apply Nat.leb_le; lia).
      assert ((S i <=? S t * w + c) = true) as -> by (apply Nat.leb_le; nia). rewrite !andb_true_l.
      replace (S t * w + c - S i) with (S t * w + (c - S i)) by nia. rewrite x_at by lia.
      destruct (Nat.eqb_spec (T (S t) (c - S i)) 0) as [E | E]; auto. apply sep_only in E; lia.
    + destruct (Nat.leb_spec i c); [| auto]. assert (i = c) by lia. subst i.
      replace (S t * w + c - S c) with (t * w + (w - 1)) by nia.
      rewrite x_at by lia. assert (T t (w - 1) = 0) as -> by (apply sep_only; lia). rewrite andb_false_r. auto.
Qed.
Lemma dig_tape t c i : c < w - 1 -> dig x (S t * w + c) i = if i <=? c then T (S t) (c - i) else 0.
Proof.
  intros Hc. unfold dig. rewrite alive_tape by auto. destruct (Nat.leb_spec i c); auto.
  replace (S t * w + c - i) with (S t * w + (c - i)) by nia. apply x_at. lia.
Qed.
Lemma dig_sep t : dig x (t * w + (w - 1)) 0 = 0.
Proof. rewrite dig_0, x_at by lia. apply sep_only; lia. Qed.
End Lookup.
