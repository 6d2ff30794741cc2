(* The sharp theorem: the program is right through tape t if and only if none of the tapes 1..t repeats an (n+1)-gram.

   If: equal keys are then equal places, so each place finds its own successor and no other. Only if: two places with
   the same gram must be followed by the same token, or the smaller one is outbid; so the grams one further are equal
   as well, and so on to the separator, which a tape has only once (`twins`): a repeat is never harmless.
   What the program writes by itself follows because its prediction depends on the past only (`causal`). *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Step Grams Lookup Packing.

Section Tapes.
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
Notation out := (out B n k x K V).
Let count_x p : count x p * w <= p + 1 < (count x p + 1) * w. Proof. eapply Lookup.count_x; eassumption. Qed.
Let out_spec i : w - 1 <= i ->
  (out i = x (i + 1) <-> forall j, w - 1 <= j <= i + w - 3 -> key x j = key x i -> x (j + 1) <= x (i + 1)).
Proof. eapply Lookup.out_spec; eassumption. Qed.

Definition repeats (t : nat) : Prop :=
  exists a b, a < b /\ b + n < w - 1 /\ forall m, m <= n -> T t (a + m) = T t (b + m).
Definition right_on (t : nat) : Prop := forall i, t * w - 1 <= i < t * w - 1 + w -> out i = x (i + 1).

Lemma count_cell t c : c < w - 1 -> count x (t * w + c) = t.
Proof. intros Hc. pose proof (count_x (t * w + c)). nia. Qed.

(* After the last token of the first tape nothing is found but places before any tape: the keys there have seen a
   separator, and this place has not. *)
Lemma after_first_tape : out (w - 2) = 0.
Proof.
  apply Nat.le_0_r. unfold Lookup.out. rewrite kqv_max_0. apply max_le. intros v Hv. apply in_map_iff in Hv as (j & <- & Hj).
  apply matching_spec in Hj as [Hj E]. destruct (Nat.lt_ge_cases j 2); [rewrite V_early by auto; lia | exfalso].
  rewrite (key_K B w n k T x) with (K := K) in E by assumption.
  pose proof (count_x (w - 2)). pose proof (count_x (j + w - 3)). pose proof (power_2 B n B2 n1).
  assert (count x (w - 2) = 0 /\ count x (j + w - 3) = 1) as [C D] by nia.
  destruct (key_inj B w n k T x w4 n1 B2 x_at below (w - 2) (j + w - 3)) as [F _]; [lia | exact E | lia].
Qed.

(* two places of one tape with the same gram part before the separator, and the smaller is outbid *)
Lemma twins t : right_on (S t) -> forall r a b, r + b = w - 2 -> n <= a -> a < b ->
  (forall m, m <= n -> T (S t) (a - m) = T (S t) (b - m)) -> False.
Proof.
  intros R. induction r; intros a b Hr Ha Hab E.
  all: assert (Dk : key x (S t * w + b) = key x (S t * w + a)) by
    (apply key_same; [rewrite !count_cell by lia; auto |];
     intros m Hm; erewrite !dig_tape by (try eassumption; lia);
     destruct (Nat.leb_spec m b), (Nat.leb_spec m a); try lia; symmetry; auto).
  all: pose proof (proj1 (out_spec (S t * w + a) ltac:(nia)) (R (S t * w + a) ltac:(nia)) (S t * w + b) ltac:(nia) Dk) as L1.
  all: pose proof (proj1 (out_spec (S t * w + b) ltac:(nia)) (R (S t * w + b) ltac:(nia)) (S t * w + a) ltac:(nia) (eq_sym Dk)) as L2.
  all: rewrite <- !Nat.add_assoc, !x_at in L1, L2 by lia.
  all: assert (Same : T (S t) (a + 1) = T (S t) (b + 1)) by lia.
  - assert (T (S t) (b + 1) = 0) by (apply sep_only; lia).
    assert (a + 1 = w - 1) by (apply (sep_only (S t)); lia). lia.
  - apply (IHr (a + 1) (b + 1)); try lia. intros m Hm. destruct m; [rewrite !Nat.sub_0_r; auto |].
    replace (a + 1 - S m) with (a - m) by lia. replace (b + 1 - S m) with (b - m) by lia. apply E; lia.
Qed.

Lemma right_iff t : (k = Paper -> S t <= B ^ n) -> (right_on (S t) <-> ~ repeats (S t)).
Proof.
  intros Hb. split.
  - intros R (a & b & Hab & Hbn & E). apply (twins t R (w - 2 - (b + n)) (a + n) (b + n)); try lia.
    intros m Hm. replace (a + n - m) with (a + (n - m)) by lia. replace (b + n - m) with (b + (n - m)) by lia.
    apply E; lia.
  - intros N i Hi. apply out_spec; [nia |]. intros j Hj E.
    pose proof (count_x i). pose proof (count_x j). pose proof (power_2 B n B2 n1).
    assert (Ci : count x i = t + 1) by nia. assert (Cj : 1 <= count x j) by nia.
    assert (Nx : count x j <= count x i) by (apply (key_next B w n k T x w4 n1 B2 x_at below sep_only i j); auto; lia).
    assert (I : count x j = count x i /\ forall m, m <= n -> dig x j m = dig x i m)
      by (apply (key_inj B w n k T x w4 n1 B2 x_at below i j); auto; intros P; specialize (Hb P); lia).
    destruct I as [C D].
    (* i and j as cells of tape t+1, or the separator before it *)
    destruct (Nat.eq_dec i (t * w + (w - 1))) as [-> | Ni].
    { replace j with (t * w + (w - 1)); auto. symmetry. apply (sep_alone B w n k T x w4 n1 B2 x_at below sep_only); auto; lia. }
    destruct (Nat.eq_dec j (t * w + (w - 1))) as [-> | Nj].
    { exfalso. apply Ni. apply (sep_alone B w n k T x w4 n1 B2 x_at below sep_only); auto. }
    assert (exists c, i = S t * w + c /\ c < w - 1) as (c & -> & Hc) by (exists (i - S t * w); nia).
    assert (exists d, j = S t * w + d /\ d < w - 1) as (d & -> & Hd) by (exists (j - S t * w); nia).
    destruct (Nat.eq_dec c d) as [-> | Ncd]; auto.
    assert (G : n <= c /\ n <= d /\ forall m, m <= n -> T (S t) (d - m) = T (S t) (c - m))
      by (apply (twin_cells B w n T x w4 n1 B2 x_at sep_only); auto).
    destruct G as (Lc & Ld & G).
    exfalso. apply N. exists (Nat.min c d - n), (Nat.max c d - n). repeat split; try lia. intros m Hm.
    specialize (G (n - m) ltac:(lia)).
    replace (Nat.min c d - n + m) with (Nat.min c d - (n - m)) by lia.
    replace (Nat.max c d - n + m) with (Nat.max c d - (n - m)) by lia.
    destruct (Nat.min_spec c d) as [[? ->] | [? ->]], (Nat.max_spec c d) as [[? ->] | [? ->]]; try lia; auto.
Qed.
End Tapes.

Section Main.
Variable B : nat.
Variables st sym : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Hypothesis st_range : forall z, st z = true -> 4 <= z < B.
Hypothesis sym_range : forall z, sym z = true -> 4 <= z < B.
Hypothesis st_sym : forall z, st z = true -> sym z = false.
Hypothesis ns_state : forall q a, st q = true -> sym a = true \/ a = 1 \/ a = 2 -> st (ns q a) = true.
Hypothesis ny_sym : forall q a, st q = true -> sym a = true -> sym (ny q a) = true.
Hypothesis ny_bos : forall q, st q = true -> ny q 1 = 1.
Hypothesis ny_eos : forall q, st q = true -> ny q 2 = 2.
Hypothesis mv_bos : forall q, st q = true -> mv q 1 = true.
Hypothesis mv_eos : forall q, st q = true -> mv q 2 = false.
Variable w : nat.
Variable T0 : nat -> nat.
Variable h0 : nat.
Hypothesis start : wf st sym w T0 h0.
Notation T := (Machine.T ns ny mv T0 h0).
Notation trace := (Machine.trace ns ny mv w T0 h0).
Notation program k n := (next_tokens B st ns ny mv k n).

Lemma next_tape_agree x y s p : 2 <= s -> agree x y p ->
  next_tape st ns ny mv x s p = next_tape st ns ny mv y s p.
Proof.
  intros Hs A. rewrite !(next_tape_five B st ns ny mv st_range) by auto.
  assert (E : forall d, before x d p = before y d p) by (intros d; unfold before; destruct (p <? d); auto; apply A; lia).
  rewrite !E. auto.
Qed.

Theorem causal k n x y p : agree x y p -> program k n x p = program k n y p.
Proof.
  intros A. unfold next_tokens. rewrite !kqv_max_0. unfold matching.
  assert (NT : forall s, 2 <= s -> agree (next_tape st ns ny mv x s) (next_tape st ns ny mv y s) p)
    by (intros s Hs q Hq; apply next_tape_agree; auto; intros r ?; apply A; lia).
  assert (KT : agree (prefix_fill (next_tape st ns ny mv x 3) 2 3) (prefix_fill (next_tape st ns ny mv y 3) 2 3) p)
    by (intros q Hq; rewrite !fill_spec; destruct (q <? 2); auto; apply NT; lia).
  rewrite (filter_ext_in _ (fun j => same_key (hash_n_gram_iter B k (prefix_fill (next_tape st ns ny mv y 3) 2 3) n)
    (hash_n_gram_iter B k y n) j p)); [f_equal; apply map_ext_in; intros j Hj |]. 2: intros j Hj; apply in_seq in Hj.
  - apply filter_In in Hj as [Hj _]. apply in_seq in Hj. apply (NT 2); lia.
  - apply eq_true_iff_eq. rewrite !same_key_spec by (destruct k; auto). rewrite (keys_agree B k n x y p A).
    rewrite (keys_agree B k n _ (prefix_fill (next_tape st ns ny mv y 3) 2 3) j) by (intros q Hq; apply KT; lia). tauto.
Qed.

(* ---- the look-up on the text of a run ---------------------------------------------------------------------------- *)
Lemma run_w4 : 4 <= w. Proof. apply (wf_w _ _ _ _ _ start). Qed.
Lemma run_B : 4 < B. Proof. pose proof (st_range _ (wf_st _ _ _ _ _ start)); lia. Qed.
Lemma run_wf t : wf st sym w (T t) (hd ns ny mv T0 h0 t). Proof. eapply wf_T; eassumption. Qed.
Lemma run_at t c : c < w -> trace (t * w + c) = T t c. Proof. eapply trace_at; eassumption. Qed.
Lemma run_below t c : c < w -> T t c < B. Proof. intros Hc. exact (wf_below B st sym st_range sym_range w _ _ c (run_wf t) Hc). Qed.
Lemma run_sep t c : c < w -> (T t c = 0 <-> c = w - 1).
Proof. intros Hc. exact (wf_sep_only B st sym st_range sym_range w _ _ c (run_wf t) Hc). Qed.
Lemma run_next s p : 2 <= s -> next_tape st ns ny mv trace s p = if p <? s then 0 else trace (p - s + w).
Proof.
  intros Hs. destruct (Nat.ltb_spec p s); [eapply next_tape_early | eapply next_tape_trace]; eassumption.
Qed.
Lemma run_K_early p : p < 2 -> prefix_fill (next_tape st ns ny mv trace 3) 2 3 p = 3.
Proof. intros Hp. rewrite fill_spec. destruct (Nat.ltb_spec p 2); auto; lia. Qed.
Lemma run_K_late p : 2 <= p -> prefix_fill (next_tape st ns ny mv trace 3) 2 3 p = trace (p + w - 3).
Proof.
  intros Hp. rewrite fill_spec, run_next by lia. pose proof run_w4.
  destruct (Nat.ltb_spec p 2); [lia |]. destruct (Nat.ltb_spec p 3); [| f_equal; lia].
  replace (p + w - 3) with (0 * w + (w - 1)) by lia. rewrite run_at by lia. symmetry. apply run_sep; lia.
Qed.
Lemma run_V_early p : p < 2 -> next_tape st ns ny mv trace 2 p = 0.
Proof. intros Hp. rewrite run_next by lia. destruct (Nat.ltb_spec p 2); auto; lia. Qed.
Lemma run_V_late p : 2 <= p -> next_tape st ns ny mv trace 2 p = trace (p + w - 2).
Proof. intros Hp. rewrite run_next by lia. destruct (Nat.ltb_spec p 2); [lia | f_equal; lia]. Qed.

(* ---- the sharp theorem ------------------------------------------------------------------------------------------- *)
Definition repeats_gram (n t : nat) : Prop :=   (* tape t, without its separator, holds an (n+1)-gram twice *)
  exists a b, a < b /\ b + n < w - 1 /\ forall m, m <= n -> T t (a + m) = T t (b + m).

Theorem sharp_teacher k n t : 1 <= n -> (k = Paper -> t <= B ^ n) ->
  ((forall i, w - 1 <= i < (t + 1) * w - 1 -> program k n trace i = trace (i + 1)) <->
   (forall s, 1 <= s <= t -> ~ repeats_gram n s)).
Proof.
  intros Hn Hb. pose proof run_w4 as W. pose proof run_B.
  pose proof (right_iff B w n k T trace W Hn ltac:(lia) run_at run_below run_sep
    _ _ run_K_early run_K_late run_V_early run_V_late) as R. split.
  - intros C s Hs. destruct s as [| s]; [lia |]. apply R; [intros P; specialize (Hb P); lia |].
    intros i Hi. apply C. nia.
  - intros N i Hi. assert (exists s, S s <= t /\ S s * w - 1 <= i < S s * w - 1 + w) as (s & Hs & Hsi).
    { exists ((i + 1) / w - 1). pose proof (Nat.div_mod (i + 1) w ltac:(lia)). pose proof (Nat.mod_upper_bound (i + 1) w ltac:(lia)).
      set (q := (i + 1) / w) in *. assert (1 <= q) by nia. assert (q <= t) by nia. replace (S (q - 1)) with q by lia. nia. }
    apply (R s); [intros P; specialize (Hb P); lia | apply N; lia | exact Hsi].
Qed.

(* The prompt may end with the last token of the first tape: the separator after it is predicted, always. *)
Theorem separator_follows k n : 1 <= n -> program k n trace (w - 2) = sep.
Proof.
  intros Hn. pose proof run_w4 as W. pose proof run_B.
  exact (after_first_tape B w n k T trace W Hn ltac:(lia) run_at run_below run_sep _ _ run_K_early run_K_late run_V_early).
Qed.

(* A text written by the program after a prompt is right up to P if and only if every prediction on the true text is. *)
Lemma free_running k n P g :
  (forall p, p < w -> g p = trace p) -> (forall p, w - 1 <= p -> g (p + 1) = program k n g p) ->
  ((forall p, p <= P -> g p = trace p) <-> (forall i, w - 1 <= i < P -> program k n trace i = trace (i + 1))).
Proof.
  intros G0 G. pose proof run_w4 as W. split.
  - intros E i Hi. rewrite <- (E (i + 1)), G by lia. apply causal. intros q Hq. symmetry. apply E. lia.
  - intros C p. induction p as [p IH] using (well_founded_induction lt_wf). intros Hp.
    destruct (Nat.lt_ge_cases p w); [auto |]. replace p with (p - 1 + 1) by lia.
    rewrite G, <- C by lia. apply causal. intros q Hq. apply IH; lia.
Qed.

(* What the program writes after the prompt `tape_0 sep`. *)
Theorem sharp k n t g : 1 <= n -> (k = Paper -> t <= B ^ n) ->
  (forall p, p < w -> g p = trace p) -> (forall p, w - 1 <= p -> g (p + 1) = program k n g p) ->
  ((forall p, p < (t + 1) * w -> g p = trace p) <-> (forall s, 1 <= s <= t -> ~ repeats_gram n s)).
Proof.
  intros Hn Hb G0 G. rewrite <- (sharp_teacher k n t Hn Hb), <- (free_running k n ((t + 1) * w - 1) g G0 G).
  pose proof run_w4. split; intros E p Hp; apply E; nia.
Qed.
End Main.
