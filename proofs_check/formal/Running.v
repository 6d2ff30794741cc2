(* The program at work: the traced graph, on 64-bit words, given the first tape and run on its own output, token after
   token, writes the machine's trace through tape t if and only if none of the tapes 1..t repeats an (n+1)-gram.

   This joins the two halves: the graph predicts what the program of `Program.v` predicts (`Words.v`), and what that
   program writes is sharp (`Sharp.v`). *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Step Grams Lookup Packing Sharp Graph Words.

(* Append what the graph predicts after the last token, so many times. *)
Fixpoint write (predict : list Z -> list Z) (count : nat) (text : list Z) : list Z :=
  match count with 0 => text | S c => write predict c (text ++ [last (predict text) 0%Z]) end.

Local Opaque output program.
Section Running.
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
Hypothesis ns_below : forall q a, ns q a < B.
Hypothesis ny_below : forall q a, ny q a < B.
Variable w : nat.
Variable T0 : nat -> nat.
Variable h0 : nat.
Hypothesis start : wf st sym w T0 h0.
Variable k : packing.
Variable n : nat.
Hypothesis n1 : 1 <= n.
Notation T := (T ns ny mv T0 h0).
Notation trace := (trace ns ny mv w T0 h0).
Notation program_text := (next_tokens B st ns ny mv k n).
Let w4 : 4 <= w. Proof. apply (run_w4 st sym w T0 h0 start). Qed.
Let B4 : 4 <= B. Proof. pose proof (run_B B st sym st_range w T0 h0 start). lia. Qed.

(* ---- the same in natural numbers --------------------------------------------------------------------------------- *)
Definition next (text : list nat) : nat := program_text (sequence_of text) (length text - 1).
Fixpoint written (count : nat) (text : list nat) : list nat :=
  match count with 0 => text | S c => written c (text ++ [next text]) end.
Definition prompt : list nat := map T0 (seq 0 w).

Lemma written_S c : forall text, written (S c) text = written c text ++ [next (written c text)].
Proof. induction c; intros; [reflexivity |]. exact (IHc (text ++ [next text])). Qed.
Lemma written_length c text : length (written c text) = length text + c.
Proof. induction c; [simpl; lia |]. rewrite written_S, app_length, IHc. simpl. lia. Qed.
Lemma prompt_length : length prompt = w. Proof. unfold prompt. rewrite map_length, seq_length. auto. Qed.

Lemma next_below text : (forall z, In z text -> z < B) -> next text < B.
Proof.
  intros Ht. unfold next, next_tokens. rewrite kqv_max_0. set (l := matching _ _ _).
  assert (largest (map (next_tape st ns ny mv (sequence_of text) 2) l) <= B - 1); [| lia].
  apply max_le. intros v Hv. apply in_map_iff in Hv as (j & <- & _).
  assert (next_tape st ns ny mv (sequence_of text) 2 j < B) by (apply (next_tape_below B st); auto; intros; apply text_is_below; auto; lia). lia.
Qed.
Lemma prompt_below z : In z prompt -> z < B.
Proof.
  intros Hz. apply in_map_iff in Hz as (c & <- & Hc). apply in_seq in Hc.
  exact (wf_below B st sym st_range sym_range w T0 h0 c start ltac:(lia)).
Qed.
Lemma written_below c text : (forall z, In z text -> z < B) -> forall z, In z (written c text) -> z < B.
Proof.
  intros Ht. induction c; [auto |]. intros z Hz. rewrite written_S in Hz. apply in_app_iff in Hz as [Hz | [<- | []]]; auto.
  apply next_below; auto.
Qed.

(* The text as one sequence: position p once enough tokens are written. *)
Definition g : sequence := fun p => nth p (written (S p) prompt) 0.
Lemma written_prefix c d p : p < w + c -> nth p (written (c + d) prompt) 0 = nth p (written c prompt) 0.
Proof.
  intros Hp. induction d; [rewrite Nat.add_0_r; auto |]. rewrite Nat.add_succ_r, written_S, app_nth1; auto.
  rewrite written_length, prompt_length. lia.
Qed.
Lemma g_at c p : p < w + c -> g p = nth p (written c prompt) 0.
Proof.
  intros Hp. unfold g. destruct (Nat.le_gt_cases c (S p)) as [Le | Gt].
  - replace (S p) with (c + (S p - c)) by lia. apply written_prefix. auto.
  - replace c with (S p + (c - S p)) by lia. symmetry. apply written_prefix. lia.
Qed.
Lemma g_prompt p : p < w -> g p = trace p.
Proof.
  intros Hp. rewrite (g_at 0) by lia. simpl. unfold prompt. rewrite nth_indep with (d' := T0 0) by (rewrite map_length, seq_length; auto).
  rewrite map_nth, seq_nth by auto. unfold Machine.trace. rewrite Nat.div_small, Nat.mod_small by auto. reflexivity.
Qed.
Lemma g_next p : w - 1 <= p -> g (p + 1) = program_text g p.
Proof.
  intros Hp. rewrite (g_at (S (p + 1 - w))) by lia. rewrite written_S.
  rewrite app_nth2 by (rewrite written_length, prompt_length; lia). rewrite written_length, prompt_length.
  replace (p + 1 - (w + (p + 1 - w))) with 0 by lia. simpl. unfold next. rewrite written_length, prompt_length.
  replace (w + (p + 1 - w) - 1) with p by lia.
  apply (causal B st ns ny mv st_range). intros q Hq. unfold sequence_of. symmetry. apply g_at. lia.
Qed.

(* ---- the graph --------------------------------------------------------------------------------------------------- *)
Variable wrap : Z -> Z.
Variable fit : nat -> Prop.                        (* texts of which lengths fit *)
Hypothesis predicted : forall text, fit (length text) -> (forall z, In z text -> z < B) -> predicts B st ns ny mv wrap k n text.

Lemma last_nth (l : list Z) : last l 0%Z = nth (length l - 1) l 0%Z.
Proof. induction l as [| a [| b l] IH]; auto. change (last (b :: l) 0%Z = nth (length (a :: b :: l) - 1) (a :: b :: l) 0%Z).
  rewrite IH. simpl. rewrite Nat.sub_0_r. reflexivity. Qed.

Lemma write_is_written c : forall text, text <> [] -> (forall z, In z text -> z < B) -> (forall l, l < length text + c -> fit l) ->
  write (output wrap B st ns ny mv (program k n)) c (as_words text) = as_words (written c text).
Proof.
  induction c; intros text Hne Ht Hf; [reflexivity |]. cbn [write].
  assert (length text <> 0) by (destruct text; simpl; congruence || lia).
  assert (E : last (output wrap B st ns ny mv (program k n) (as_words text)) 0%Z = Z.of_nat (next text)).
  { destruct (predicted text) as [Pl Pn]; auto; [apply Hf; lia |]. rewrite last_nth, Pl. apply Pn. lia. }
  rewrite E. replace (as_words text ++ [Z.of_nat (next text)]) with (as_words (text ++ [next text]))
    by (unfold as_words; rewrite map_app; reflexivity).
  rewrite IHc; auto.
  - destruct text; simpl; congruence.
  - intros z Hz. apply in_app_iff in Hz as [Hz | [<- | []]]; auto. apply next_below; auto.
  - intros l Hl. rewrite app_length in Hl. simpl in Hl. apply Hf. lia.
Qed.

Definition true_text (t : nat) : list Z := map (fun p => Z.of_nat (trace p)) (seq 0 ((t + 1) * w)).

Theorem sharp_writing t : (k = Paper -> t <= B ^ n) -> (forall l, l < (t + 1) * w -> fit l) ->
  (write (output wrap B st ns ny mv (program k n)) (t * w) (as_words prompt) = true_text t <->
   (forall s, 1 <= s <= t -> ~ repeats_gram ns ny mv w T0 h0 n s)).
Proof.
  intros Hb Hf.
  rewrite <- (sharp B st sym ns ny mv st_range sym_range st_sym ns_state ny_sym ny_bos ny_eos mv_bos mv_eos w T0 h0 start
    k n t g n1 Hb g_prompt g_next).
  rewrite write_is_written; auto using prompt_below.
  - assert (LW : length (written (t * w) prompt) = (t + 1) * w) by (rewrite written_length, prompt_length; lia).
    unfold true_text, as_words. split.
    + intros E p Hp. rewrite (g_at (t * w)) by lia. apply Nat2Z.inj.
      rewrite <- (map_nth Z.of_nat), E. change (Z.of_nat 0) with 0%Z.
      rewrite nth_mapped with (d' := 0) by (rewrite seq_length; auto). rewrite seq_nth by auto. reflexivity.
    + intros E. apply nth_ext with (d := 0%Z) (d' := 0%Z); [rewrite !map_length, seq_length; auto |].
      intros p Hp. rewrite map_length, LW in Hp. rewrite nth_mapped with (d' := 0) by lia.
      rewrite nth_mapped with (d' := 0) by (rewrite seq_length; auto). rewrite seq_nth by auto.
      rewrite <- (g_at (t * w)) by lia. f_equal. apply E. auto.
  - unfold prompt. destruct w; [lia | discriminate].
  - intros l Hl. apply Hf. rewrite prompt_length in Hl. lia.
Qed.
End Running.

(* ---- on words of 64 bits ----------------------------------------------------------------------------------------- *)
Theorem sharp_64 B st sym ns ny mv :
  (forall z, st z = true -> 4 <= z < B) -> (forall z, sym z = true -> 4 <= z < B) -> (forall z, st z = true -> sym z = false) ->
  (forall q a, st q = true -> sym a = true \/ a = bos \/ a = eos -> st (ns q a) = true) ->
  (forall q a, st q = true -> sym a = true -> sym (ny q a) = true) ->
  (forall q, st q = true -> ny q bos = bos) -> (forall q, st q = true -> ny q eos = eos) ->
  (forall q, st q = true -> mv q bos = true) -> (forall q, st q = true -> mv q eos = false) ->
  (forall q a, ns q a < B) -> (forall q a, ny q a < B) ->
  forall w T0 h0, wf st sym w T0 h0 -> forall k n t, 1 <= n -> (k = Paper -> t <= B ^ n) -> key_fits B k n ((t + 1) * w) ->
  (write (output wrap64 B st ns ny mv (program k n)) (t * w) (as_words (prompt w T0)) = true_text ns ny mv w T0 h0 t <->
   (forall s, 1 <= s <= t -> ~ repeats_gram ns ny mv w T0 h0 n s)).
Proof.
  intros H1 H2 H3 H4 H5 H6 H7 H8 H9 Hns Hny w T0 h0 W k n t Hn Hb Hk.
  assert (B4 : 4 <= B) by (pose proof (run_B B st sym H1 w T0 h0 W); lia).
  apply (sharp_writing B st sym) with (fit := fun l => l < (t + 1) * w); auto.
  intros text Hl Ht. apply words_64; auto. unfold key_fits in *.
  pose proof (largest_key_grows B k n (length text) ((t + 1) * w) ltac:(lia)). lia.
Qed.
