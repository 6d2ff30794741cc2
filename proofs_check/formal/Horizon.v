(* Any horizon: the first wrong token is the first whose key is also held by a place, on its own tape or an earlier one,
   that is followed by a larger token; what the program writes there is the largest token that follows the key.

   No bound on the number of steps, no condition on grams: this is what the program does, whatever the packing. *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Step Grams Lookup Packing Sharp.

Section Horizon.
Variable B : nat.
Variables st sym : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Hypothesis st_range : forall z, st z = true -> 4 <= z < B.
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
Notation trace := (trace ns ny mv w T0 h0).
Notation program k n := (next_tokens B st ns ny mv k n).

(* ---- the text of a run, as the lemmas on texts want it ----------------------------------------------------------- *)
Let w4 : 4 <= w. Proof. apply (run_w4 st sym w T0 h0); assumption. Qed.
Let B2 : 2 <= B. Proof. pose proof (run_B B st sym st_range w T0 h0 start). lia. Qed.
Let x_at t c : c < w -> trace (t * w + c) = T t c. Proof. apply (run_at st sym ns ny mv w T0 h0); assumption. Qed.
Let below t c : c < w -> T t c < B. Proof. apply (run_below B st sym ns ny mv); assumption. Qed.
Let sep_only t c : c < w -> (T t c = 0 <-> c = w - 1). Proof. apply (run_sep B st sym ns ny mv); assumption. Qed.
Let K_early p : p < 2 -> prefix_fill (next_tape st ns ny mv trace 3) 2 3 p = 3. Proof. eapply run_K_early; eassumption. Qed.
Let K_late p : 2 <= p -> prefix_fill (next_tape st ns ny mv trace 3) 2 3 p = trace (p + w - 3).
Proof. apply (run_K_late B st sym ns ny mv); assumption. Qed.
Let V_early p : p < 2 -> next_tape st ns ny mv trace 2 p = 0. Proof. apply (run_V_early B st sym ns ny mv); assumption. Qed.
Let V_late p : 2 <= p -> next_tape st ns ny mv trace 2 p = trace (p + w - 2). Proof. apply (run_V_late B st sym ns ny mv); assumption. Qed.
Lemma count_trace p : count trace p * w <= p + 1 < (count trace p + 1) * w.
Proof. apply (count_x B w 1 T trace); auto. Qed.

(* ---- who is outbid ----------------------------------------------------------------------------------------------- *)
(* Place j, on the tape that i is on or an earlier one, has the key of i and is followed by a larger token. *)
Definition outbids k n j i : Prop :=
  w - 1 <= j /\ count trace j <= count trace i /\ key_at B n k trace j = key_at B n k trace i /\ trace (i + 1) < trace (j + 1).
Definition outbid k n i : Prop := exists j, outbids k n j i.

(* A place of this tape with the same key has been seen when the look-up is made, though it may lie ahead. *)
Lemma key_seen k n i j : 1 <= n -> w - 1 <= i -> count trace j <= count trace i ->
  key_at B n k trace j = key_at B n k trace i -> j <= i + w - 3.
Proof.
  intros n1 Hi C E. destruct (Nat.le_gt_cases j (i + w - 3)) as [| Far]; auto. exfalso.
  pose proof (count_trace i). pose proof (count_trace j). pose proof (power_2 B n B2 n1).
  assert (count trace j = count trace i) by nia.
  destruct (key_inj B w n k T trace w4 n1 B2 x_at below i j) as [_ D]; [lia | auto |].
  destruct (count trace i) as [| t] eqn:Ci; [nia |].
  assert (Hi' : i = t * w + (w - 1) \/ i = S t * w + 0) by nia. destruct Hi' as [-> | ->].
  - assert (j = t * w + (w - 1)) by (apply (sep_alone B w n k T trace w4 n1 B2 x_at below sep_only); auto; lia). lia.
  - assert (Hj : exists d, j = S t * w + d /\ d < w - 1) by (exists (j - S t * w); nia). destruct Hj as (d & -> & Hd).
    destruct (twin_cells B w n T trace w4 n1 B2 x_at sep_only t 0 d) as (? & _); auto; lia.
Qed.

Theorem right_iff_not_outbid k n i : 1 <= n -> w - 1 <= i -> (program k n trace i = trace (i + 1) <-> ~ outbid k n i).
Proof.
  intros n1 Hi.
  change (program k n trace i) with (out B n k trace (prefix_fill (next_tape st ns ny mv trace 3) 2 3) (next_tape st ns ny mv trace 2) i).
  rewrite (out_spec B w n k T trace w4 n1 B2 x_at sep_only _ _ K_early K_late V_early V_late) by auto. split.
  - intros A (j & Hj & C & E & L). pose proof (key_seen k n i j n1 Hi C E). specialize (A j ltac:(lia) E). lia.
  - intros N j Hj E. destruct (Nat.le_gt_cases (trace (j + 1)) (trace (i + 1))) as [| L]; auto. exfalso. apply N. exists j.
    repeat split; auto; [lia |]. apply (key_next B w n k T trace w4 n1 B2 x_at below sep_only i j); auto; lia.
Qed.

(* The prediction is the largest token that follows the key on this tape or an earlier one. *)
Theorem predicts_largest k n i : 1 <= n -> w - 1 <= i ->
  (exists j, w - 1 <= j /\ count trace j <= count trace i /\ key_at B n k trace j = key_at B n k trace i /\
     program k n trace i = trace (j + 1)) /\
  (forall j, w - 1 <= j -> count trace j <= count trace i -> key_at B n k trace j = key_at B n k trace i ->
     trace (j + 1) <= program k n trace i).
Proof.
  intros n1 Hi.
  change (program k n trace i) with (out B n k trace (prefix_fill (next_tape st ns ny mv trace 3) 2 3) (next_tape st ns ny mv trace 2) i).
  set (o := out _ _ _ _ _ _ i).
  pose proof (fun m => out_le B w n k T trace w4 n1 B2 x_at sep_only _ _ K_early K_late V_early V_late i m Hi) as L.
  fold o in L. split.
  - destruct (Nat.eq_dec o 0) as [Z | NZ].
    + exists i. repeat split; auto. pose proof (proj1 (L o) (le_n _) i ltac:(lia) eq_refl). lia.
    + destruct (Forall_Exists_dec (fun j => key_at B n k trace j = key_at B n k trace i -> trace (j + 1) <= o - 1)) with
        (l := seq (w - 1) (i + w - 2 - (w - 1))) as [F | E].
      { intros j. destruct (list_eq_dec Nat.eq_dec (key_at B n k trace j) (key_at B n k trace i)) as [e | ne].
        - destruct (le_dec (trace (j + 1)) (o - 1)); [left; auto | right; intros Q; auto].
        - left. intros e. contradiction. }
      * exfalso. assert (o <= o - 1); [| lia]. apply L. intros j Hj E. rewrite Forall_forall in F. apply F; auto.
        apply in_seq. lia.
      * apply Exists_exists in E as (j & Hj & N). apply in_seq in Hj.
        destruct (list_eq_dec Nat.eq_dec (key_at B n k trace j) (key_at B n k trace i)) as [e | ne]; [| tauto].
        pose proof (proj1 (L o) (le_n _) j ltac:(lia) e).
        exists j. repeat split; auto; [lia | | ].
        -- apply (key_next B w n k T trace w4 n1 B2 x_at below sep_only i j); auto; lia.
        -- destruct (le_dec (trace (j + 1)) (o - 1)); [tauto | lia].
  - intros j Hj C E. apply (proj1 (L o) (le_n _)); auto. pose proof (key_seen k n i j n1 Hi C E). lia.
Qed.

(* ---- the first wrong token --------------------------------------------------------------------------------------- *)
Definition first_wrong (g : sequence) (P : nat) : Prop := (forall p, p < P -> g p = trace p) /\ g P <> trace P.

Theorem horizon k n g i : 1 <= n -> w - 1 <= i ->
  (forall p, p < w -> g p = trace p) -> (forall p, w - 1 <= p -> g (p + 1) = program k n g p) ->
  (first_wrong g (i + 1) <-> outbid k n i /\ forall i', w - 1 <= i' < i -> ~ outbid k n i').
Proof.
  intros n1 Hi G0 G.
  assert (F : forall P, (forall p, p <= P -> g p = trace p) <-> (forall i, w - 1 <= i < P -> ~ outbid k n i)).
  { intros P. rewrite (free_running B st sym ns ny mv st_range w T0 h0 start k n P g G0 G). split; intros A j Hj; apply right_iff_not_outbid; auto; lia. }
  unfold first_wrong. split.
  - intros [R W]. assert (N : forall i', w - 1 <= i' < i -> ~ outbid k n i') by (apply F; intros p Hp; apply R; lia).
    split; auto. destruct (Forall_Exists_dec (fun j => ~ outbids k n j i)) with (l := seq 0 (i + w)) as [A | E].
    { intros j. unfold outbids. destruct (le_dec (w - 1) j); [| left; tauto].
      destruct (le_dec (count trace j) (count trace i)); [| left; tauto].
      destruct (list_eq_dec Nat.eq_dec (key_at B n k trace j) (key_at B n k trace i)); [| left; tauto].
      destruct (lt_dec (trace (i + 1)) (trace (j + 1))); [right; tauto | left; tauto]. }
    + exfalso. apply W. apply (proj2 (F (i + 1))); auto. intros i' Hi' (j & O).
      destruct (Nat.eq_dec i' i) as [-> | ?]; [| apply (N i'); [lia | exists j; auto]].
      rewrite Forall_forall in A. apply (A j); auto. apply in_seq.
      destruct O as (? & C & E & _). pose proof (key_seen k n i j n1 Hi C E). lia.
    + apply Exists_exists in E as (j & _ & O). exists j. unfold outbids in *.
      destruct (le_dec (w - 1) j); [| tauto]. destruct (le_dec (count trace j) (count trace i)); [| tauto].
      destruct (list_eq_dec Nat.eq_dec (key_at B n k trace j) (key_at B n k trace i)); [| tauto].
      destruct (lt_dec (trace (i + 1)) (trace (j + 1))); tauto.
  - intros [O N]. assert (R : forall p, p <= i -> g p = trace p) by (apply F; auto).
    split; [intros p Hp; apply R; lia |]. intros E. apply (proj1 (F (i + 1))) with (i := i); auto; [| lia].
    intros p Hp. destruct (Nat.eq_dec p (i + 1)) as [-> | ?]; auto. apply R; lia.
Qed.

(* Right for ever, or not: the same without a first. *)
Theorem right_through k n g P : 1 <= n ->
  (forall p, p < w -> g p = trace p) -> (forall p, w - 1 <= p -> g (p + 1) = program k n g p) ->
  ((forall p, p <= P -> g p = trace p) <-> (forall i, w - 1 <= i < P -> ~ outbid k n i)).
Proof.
  intros n1 G0 G. rewrite (free_running B st sym ns ny mv st_range w T0 h0 start k n P g G0 G). split; intros A j Hj; apply right_iff_not_outbid; auto; lia.
Qed.

(* ---- the paper's packing ends somewhere: on every machine and every tape ----------------------------------------- *)
Lemma H_alone f p n : (forall m, 1 <= m <= n -> dig f p m = 0) -> H B f p n = B ^ n * f p.
Proof.
  induction n; intros D; [simpl; lia |]. change (H B f p (S n)) with (dig f p (S n) + B * H B f p n).
  rewrite (D (S n)) by lia. rewrite IHn by (intros; apply D; lia). simpl. nia.
Qed.

(* The separator after tape B^(2n) has the key of the `bos` of tape 1, which is followed by a larger token. *)
Lemma separator_outbid n : 1 <= n -> outbid Paper n (B ^ (2 * n) * w + (w - 1)).
Proof.
  intros n1. set (M := B ^ (2 * n)). exists (1 * w + 0).
  assert (CI : count trace (M * w + (w - 1)) = M + 1) by (pose proof (count_trace (M * w + (w - 1))); nia).
  assert (CJ : count trace (1 * w + 0) = 1) by (pose proof (count_trace (1 * w + 0)); nia).
  assert (WF : wf st sym w (T 1) (hd ns ny mv T0 h0 1)) by (apply (run_wf B st sym ns ny mv); assumption).
  assert (HI : H B trace (M * w + (w - 1)) n = 0).
  { rewrite H_alone.
    - rewrite x_at by lia. assert (T M (w - 1) = 0) as -> by (apply sep_only; lia). lia.
    - intros m Hm. unfold dig. replace (alive trace (M * w + (w - 1)) m) with false; auto. symmetry.
      clear -x_at sep_only w4. induction m.
      + simpl. rewrite x_at by lia. assert (T M (w - 1) = 0) as -> by (apply sep_only; lia). auto.
      + rewrite alive_S, IHm. auto. }
  assert (HJ : H B trace (1 * w + 0) n = B ^ n).
  { rewrite H_alone.
    - rewrite x_at by lia. rewrite (wf_bos _ _ _ _ _ WF). lia.
    - intros m Hm. rewrite (dig_tape B w n T trace w4 n1 B2 x_at sep_only 0 0 m) by lia.
      destruct (Nat.leb_spec m 0); auto; lia. }
  repeat split; [lia | lia | |].
  - unfold key_at, pack. rewrite CI, CJ, HI, HJ. f_equal. unfold M. replace (2 * n) with (n + n) by lia.
    rewrite Nat.pow_add_r. lia.
  - replace (M * w + (w - 1) + 1) with (S M * w + 0) by nia. replace (1 * w + 0 + 1) with (1 * w + 1) by lia.
    rewrite !x_at by lia.
    assert (WM : wf st sym w (T (S M)) (hd ns ny mv T0 h0 (S M))) by (apply (run_wf B st sym ns ny mv); assumption).
    rewrite (wf_bos _ _ _ _ _ WM). destruct WF as [_ Hh Hs _ _ He Hy]. set (h := hd ns ny mv T0 h0 1) in *.
    destruct (Nat.eq_dec 1 h) as [<- | N]; [apply st_range in Hs; lia |].
    destruct (Nat.eq_dec 1 (last_cell w h)) as [E | N2]; [rewrite <- E in He; rewrite He; lia |].
    specialize (Hy 1 ltac:(lia) ltac:(lia) ltac:(lia)). apply sym_range in Hy. lia.
Qed.

Theorem paper_packing_ends n g : 1 <= n ->
  (forall p, p < w -> g p = trace p) -> (forall p, w - 1 <= p -> g (p + 1) = program Paper n g p) ->
  exists p, p <= (B ^ (2 * n) + 1) * w /\ g p <> trace p.
Proof.
  intros n1 G0 G. set (P := (B ^ (2 * n) + 1) * w).
  destruct (Forall_Exists_dec (fun p => g p = trace p)) with (l := seq 0 (S P)) as [A | E].
  { intros p. apply Nat.eq_dec. }
  - exfalso. rewrite Forall_forall in A.
    apply (proj1 (right_through Paper n g P n1 G0 G)) with (i := B ^ (2 * n) * w + (w - 1)).
    + intros p Hp. apply A, in_seq. lia.
    + unfold P. nia.
    + apply separator_outbid; auto.
  - apply Exists_exists in E as (p & Hp & N). apply in_seq in Hp. exists p. split; auto. lia.
Qed.
End Horizon.
