(* The universal program at work: the traced graph, on 64-bit words, given a machine's table and a tape as one list of
   tokens and run on its own output, token after token, writes the machine's run through tape t if and only if none of the
   tapes 1..t repeats an (n+1)-gram (`universal_runs`).

   This joins UniversalGraph.v (the graph predicts what the program of Universal.v predicts) and UniversalMachine.v (what
   that program writes is sharp). It needs that a prediction depends on the past only (`universal_causal`). *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Grams Sharp Graph Words Running Tags Universal UniversalMachine UniversalBuild UniversalGraph.

(* ---- a prediction depends on the past only ----------------------------------------------------------------------- *)
Section Agree.
Variable p : nat.
Notation "a == b" := (agree a b p) (at level 70).
Lemma agree_refl a : a == a. Proof. intros q _. auto. Qed.
Lemma agree_map a b f : a == b -> tok_map a f == tok_map b f.
Proof. intros A q Hq. unfold tok_map. rewrite A by auto. auto. Qed.
Lemma agree_map2 a b c d f : a == b -> c == d -> seq_map a c f == seq_map b d f.
Proof. intros A C q Hq. unfold seq_map. rewrite A, C by auto. auto. Qed.
Lemma agree_shift_or d a b n : a == b -> shift_or d a n == shift_or d b n.
Proof. intros A q Hq. rewrite !shift_or_spec. destruct (q <? n); auto. apply A. lia. Qed.
Lemma agree_shift a b n : a == b -> shift_right a n == shift_right b n.
Proof. apply (agree_shift_or 0). Qed.
Lemma agree_cumsum a b : a == b -> cumsum a == cumsum b.
Proof.
  intros A q Hq. unfold cumsum, sel_width, selected. f_equal. apply filter_ext_in. intros j Hj. apply in_seq in Hj.
  rewrite A by lia. auto.
Qed.
Lemma agree_where a b c d e f : a == b -> c == d -> e == f -> where_ a c e == where_ b d f.
Proof. intros. unfold where_. apply agree_map2; apply agree_map2; assumption. Qed.
Lemma agree_mask a b c d v : a == b -> c == d -> mask a c v == mask b d v.
Proof. intros. apply agree_where; [| | apply agree_refl]; assumption. Qed.
Lemma agree_fill a b n v : a == b -> prefix_fill a n v == prefix_fill b n v.
Proof. intros. apply agree_where; [apply agree_refl | assumption | apply agree_refl]. Qed.
Definition all_agree := Forall2 (fun a b => a == b).
Lemma agree_keys ks ks' qs qs' j q : j <= p -> q <= p -> all_agree ks ks' -> all_agree qs qs' -> same_key ks qs j q = same_key ks' qs' j q.
Proof.
  intros Hj Hq A. revert qs qs'. unfold same_key. induction A as [| a b ks ks' E A IH]; intros qs qs' C; [auto |].
  destruct C as [| c d qs qs' F C]; [auto |]. simpl. rewrite (E j), (F q), (IH _ _ C) by auto. auto.
Qed.
Lemma agree_max ks ks' qs qs' v v' : all_agree ks ks' -> all_agree qs qs' -> v == v' -> kqv_max ks qs v 0 == kqv_max ks' qs' v' 0.
Proof.
  intros A C V q Hq. rewrite !kqv_max_0. unfold matching.
  rewrite (filter_ext_in _ (fun j => same_key ks' qs' j q)).
  - f_equal. apply map_ext_in. intros j Hj. apply filter_In in Hj as [Hj _]. apply in_seq in Hj. apply V. lia.
  - intros j Hj. apply in_seq in Hj. apply agree_keys; auto. lia.
Qed.
Lemma agree_band a a' b b' : a == a' -> b == b' -> band a b == band a' b'. Proof. intros. apply agree_map2; assumption. Qed.
Lemma agree_bor a a' b b' : a == a' -> b == b' -> bor a b == bor a' b'. Proof. intros. apply agree_map2; assumption. Qed.
Lemma agree_bandnot a a' b b' : a == a' -> b == b' -> bandnot a b == bandnot a' b'. Proof. intros. apply agree_map2; assumption. Qed.
Lemma agree_grams x y n : x == y -> all_agree (tape_n_gram x n) (tape_n_gram y n).
Proof.
  intros X. unfold tape_n_gram.
  assert (G : forall many s s' o o' back, s == s' -> o == o' -> all_agree (last_tokens x s o back many) (last_tokens y s' o' back many)).
  { induction many; intros s s' o o' back S O; constructor.
    - apply agree_where; [apply agree_bor; [| apply agree_shift_or] | apply agree_refl | apply agree_shift]; assumption.
    - apply IHmany; [| apply agree_bor; [| apply agree_shift_or]]; assumption. }
  apply G; [apply agree_map; auto | apply agree_refl].
Qed.

Record rules_agree (r r' : rule) : Prop := {
  a_head : is_head r == is_head r'; a_state : next_state r == next_state r';
  a_symbol : next_symbol r == next_symbol r'; a_move : move_R r == move_R r' }.
Lemma agree_shifted r r' n : rules_agree r r' -> rules_agree (shifted r n) (shifted r' n).
Proof. intros [A C D E]. constructor; apply agree_shift; auto. Qed.
Lemma agree_where3 a a' b b' c c' d d' : a == a' -> b == b' -> c == c' -> d == d' -> where3 a b c d == where3 a' b' c' d'.
Proof. intros. unfold where3. apply agree_where; [apply agree_map | | apply agree_where; [apply agree_map | |]]; assumption. Qed.
Lemma agree_move_head a a' b b' c c' d d' e e' f f' : a == a' -> b == b' -> c == c' -> d == d' -> e == e' -> f == f' ->
  move_head a b c d e f == move_head a' b' c' d' e' f'.
Proof.
  intros. unfold move_head. apply agree_where3; [| apply agree_shift; assumption | assumption | assumption].
  apply agree_where; [| apply agree_refl | apply agree_where; [| apply agree_refl | apply agree_refl]].
  - apply agree_bor; [apply agree_bandnot | apply agree_band]; assumption.
  - apply agree_bor; [apply agree_band; apply agree_shift | apply agree_bandnot]; assumption.
Qed.
Lemma agree_next_here c c' r r' n : c == c' -> rules_agree r r' -> next_here c r n == next_here c' r' n.
Proof.
  intros A C. pose proof (agree_shifted _ _ n C) as [C1 C2 _ _]. pose proof (agree_shifted _ _ (n - 1) C) as [D1 _ D3 _].
  apply agree_where; [assumption | assumption |]. apply agree_where; [assumption | assumption | apply agree_shift; assumption].
Qed.
Lemma agree_moves_here r r' n : rules_agree r r' -> moves_here r n == moves_here r' n.
Proof. intros C. pose proof (agree_shifted _ _ n C) as [C1 _ _ C4]. apply agree_band; assumption. Qed.
Lemma agree_next_tape c c' r r' s : c == c' -> rules_agree r r' -> next_tape_found c r s == next_tape_found c' r' s.
Proof.
  intros A C. unfold next_tape_found.
  apply agree_move_head; first [apply agree_next_here; assumption | apply agree_moves_here; assumption | apply agree_shifted; assumption].
Qed.
Lemma agree_look_up st L R x y c d : x == y -> c == d -> rules_agree (look_up st L R x c) (look_up st L R y d).
Proof.
  intros X C.
  assert (K : all_agree [mask (shift_right x 4) (bor (is_token x L) (is_token x R)) sep; shift_right x 3]
    [mask (shift_right y 4) (bor (is_token y L) (is_token y R)) sep; shift_right y 3]).
  { constructor; [apply agree_mask; [apply agree_shift | apply agree_bor; apply agree_map]; assumption |].
    constructor; [apply agree_shift; assumption | constructor]. }
  assert (Q : all_agree [c; shift_right c 1] [d; shift_right d 1])
    by (constructor; [assumption | constructor; [apply agree_shift; assumption | constructor]]).
  constructor; unfold look_up; cbn [is_head next_state next_symbol move_R].
  - apply agree_map. assumption.
  - apply agree_max; [exact K | exact Q | apply agree_shift; assumption].
  - apply agree_max; [exact K | exact Q | apply agree_shift; assumption].
  - apply agree_max; [exact K | exact Q | apply agree_map; assumption].
Qed.
End Agree.

Theorem universal_causal st L R n x y p : agree x y p -> next_tokens_universal st L R n x p = next_tokens_universal st L R n y p.
Proof.
  intros X.
  assert (LN : agree (line x) (line y) p) by (apply agree_cumsum, agree_map; assumption).
  assert (C : agree (cells x) (cells y) p) by (apply agree_mask; [assumption | apply agree_map; assumption]).
  assert (RU : rules_agree p (look_up st L R x (cells x)) (look_up st L R y (cells y))) by (apply agree_look_up; assumption).
  assert (K : agree (universal_key_tape st L R x) (universal_key_tape st L R y) p)
    by (apply agree_fill, agree_next_tape; assumption).
  assert (A : agree (next_tokens_universal st L R n x) (next_tokens_universal st L R n y) p); [| apply A; auto].
  unfold next_tokens_universal. apply agree_max.
  - constructor; [apply agree_cumsum, agree_map; assumption | apply agree_grams; assumption].
  - constructor; [assumption | apply agree_grams; assumption].
  - apply agree_next_tape; assumption.
Qed.

(* ---- the text that a causal program writes after a prompt -------------------------------------------------------- *)
Section Free.
Variable F : sequence -> sequence.
Hypothesis F_causal : forall x y p, agree x y p -> F x p = F y p.
Variable prompt : list nat.
Hypothesis prompt_some : prompt <> [].
Definition next_of (text : list nat) : nat := F (sequence_of text) (length text - 1).
Fixpoint continued (count : nat) (text : list nat) : list nat :=
  match count with 0 => text | S c => continued c (text ++ [next_of text]) end.
Lemma continued_S c : forall text, continued (S c) text = continued c text ++ [next_of (continued c text)].
Proof. induction c; intros text; [reflexivity |]. exact (IHc (text ++ [next_of text])). Qed.
Lemma continued_length c text : length (continued c text) = length text + c.
Proof. induction c; [simpl; lia |]. rewrite continued_S, app_length, IHc. simpl. lia. Qed.
(* the text as one sequence: position p once enough tokens are written *)
Definition text_of : sequence := fun p => nth p (continued (S p) prompt) 0.
Lemma continued_prefix c d p : p < length prompt + c -> nth p (continued (c + d) prompt) 0 = nth p (continued c prompt) 0.
Proof.
  intros Hp. induction d; [rewrite Nat.add_0_r; auto |]. rewrite Nat.add_succ_r, continued_S, app_nth1; auto.
  rewrite continued_length. lia.
Qed.
Lemma text_at c p : p < length prompt + c -> text_of p = nth p (continued c prompt) 0.
Proof.
  intros Hp. unfold text_of. destruct (Nat.le_gt_cases c (S p)) as [Le | Gt].
  - replace (S p) with (c + (S p - c)) by lia. apply continued_prefix. auto.
  - replace c with (S p + (c - S p)) by lia. symmetry. apply continued_prefix. lia.
Qed.
Lemma text_prompt p : p < length prompt -> text_of p = nth p prompt 0.
Proof. intros Hp. apply (text_at 0). lia. Qed.
Lemma text_next p : length prompt - 1 <= p -> text_of (p + 1) = F text_of p.
Proof.
  intros Hp. assert (0 < length prompt) by (destruct prompt; simpl; [tauto | lia]).
  rewrite (text_at (S (p + 1 - length prompt))) by lia. rewrite continued_S.
  rewrite app_nth2 by (rewrite continued_length; lia). rewrite continued_length.
  replace (p + 1 - (length prompt + (p + 1 - length prompt))) with 0 by lia. simpl. unfold next_of. rewrite continued_length.
  replace (length prompt + (p + 1 - length prompt) - 1) with p by lia.
  apply F_causal. intros q Hq. unfold sequence_of. symmetry. apply text_at. lia.
Qed.
End Free.

(* ---- the prompt as a list ---------------------------------------------------------------------------------------- *)
Section Table.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Variables L R : nat.
Definition rule_tokens (qa : nat * nat) : list nat :=
  let (q, a) := qa in [q; a; ns q a; ny q a; if mv q a then R else L].
Definition table_tokens (pairs : list (nat * nat)) : list nat := flat_map rule_tokens pairs.
Lemma table_length pairs : length (table_tokens pairs) = 5 * length pairs.
Proof. induction pairs as [| [q a] pairs IH]; simpl; [auto |]. rewrite IH. lia. Qed.
Lemma table_nth pairs more : forall i j, i < length pairs -> j < 5 ->
  nth (5 * i + j) (table_tokens pairs ++ more) 0 = nth j (rule_tokens (nth i pairs (0, 0))) 0.
Proof.
  induction pairs as [| [q a] pairs IH]; intros i j Hi Hj; [simpl in Hi; lia |].
  change (table_tokens ((q, a) :: pairs)) with (rule_tokens (q, a) ++ table_tokens pairs). rewrite <- app_assoc.
  destruct i as [| i].
  - rewrite app_nth1 by (simpl; lia). replace (5 * 0 + j) with j by lia. reflexivity.
  - rewrite app_nth2 by (simpl; lia). change (length (rule_tokens (q, a))) with 5.
    replace (5 * S i + j - 5) with (5 * i + j) by lia. apply IH; auto. simpl in Hi. lia.
Qed.
End Table.

(* ---- the whole of it --------------------------------------------------------------------------------------------- *)
Section Whole.
Variables symbols states its_symbols its_states : nat.     (* what the program has room for; what the machine has *)
Hypothesis symbols_fit : its_symbols <= symbols.
Hypothesis states_fit : its_states <= states.
Notation sym := (is_symbol its_symbols).
Notation st := (is_state_of symbols its_states).
Notation L := (4 + symbols + states).
Notation R := (5 + symbols + states).
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Hypothesis ns_state : forall q a, st q = true -> readable sym a -> st (ns q a) = true.
Hypothesis ny_sym : forall q a, st q = true -> sym a = true -> sym (ny q a) = true.
Hypothesis ends : forall q, st q = true -> ny q bos = bos /\ ny q eos = eos /\ mv q bos = true /\ mv q eos = false.
(* the rules, in any order: one for every state and everything that can stand under the head *)
Variable pairs : list (nat * nat).
Hypothesis pairs_all : forall q a, In (q, a) pairs <-> st q = true /\ readable sym a.
(* the tape, with its separator *)
Variable tape0 : list nat.
Variable h0 : nat.
Notation w := (length tape0).
Notation T0 := (sequence_of tape0).
Hypothesis start : wf st sym w T0 h0.
Variable n : nat.
Hypothesis n1 : 1 <= n.
Definition prompt : list nat := table_tokens ns ny mv L R pairs ++ [sep] ++ tape0.
Definition run_tokens (t : nat) : list nat := map (Machine.trace ns ny mv w T0 h0) (seq 0 ((t + 1) * w)).
Definition whole_text (t : nat) : list nat := table_tokens ns ny mv L R pairs ++ [sep] ++ run_tokens t.
Notation U := (next_tokens_universal (is_state_of symbols states) L R n).
Notation text := (text_of U prompt).

Lemma prompt_length : length prompt = 5 * length pairs + 1 + w.
Proof. unfold prompt. rewrite !app_length, table_length. simpl. lia. Qed.
Lemma whole_length t : length (whole_text t) = 5 * length pairs + 1 + (t + 1) * w.
Proof. unfold whole_text, run_tokens. rewrite !app_length, table_length, map_length, seq_length. simpl length. lia. Qed.
Lemma prompt_some : prompt <> [].
Proof. unfold prompt. destruct (table_tokens ns ny mv L R pairs); discriminate. Qed.
Lemma prompt_after p : p < w -> nth (5 * length pairs + 1 + p) prompt 0 = T0 p.
Proof.
  intros Hp. unfold prompt. rewrite app_nth2 by (rewrite table_length; lia). rewrite table_length.
  replace (5 * length pairs + 1 + p - 5 * length pairs) with (S p) by lia. reflexivity.
Qed.
Lemma whole_after t p : p < (t + 1) * w ->
  nth (5 * length pairs + 1 + p) (whole_text t) 0 = Machine.trace ns ny mv w T0 h0 p.
Proof.
  intros Hp. unfold whole_text. rewrite app_nth2 by (rewrite table_length; lia). rewrite table_length.
  replace (5 * length pairs + 1 + p - 5 * length pairs) with (S p) by lia. simpl nth. unfold run_tokens.
  rewrite nth_indep with (d' := Machine.trace ns ny mv w T0 h0 0) by (rewrite map_length, seq_length; auto).
  rewrite map_nth, seq_nth by auto. auto.
Qed.
Lemma whole_before t p : p < 5 * length pairs + 1 -> nth p (whole_text t) 0 = nth p prompt 0.
Proof.
  intros Hp. unfold whole_text, prompt. rewrite !app_assoc. set (head := _ ++ [sep]).
  assert (length head = 5 * length pairs + 1) by (unfold head; rewrite app_length, table_length; simpl; lia).
  rewrite (app_nth1 head (run_tokens t)), (app_nth1 head tape0) by lia. auto.
Qed.
Lemma text_table : holds_table ns ny mv L R (length pairs) (fun i => fst (nth i pairs (0, 0))) (fun i => snd (nth i pairs (0, 0))) text.
Proof.
  assert (E : forall p, p < length prompt -> text p = nth p prompt 0) by (intros; apply text_prompt; auto using prompt_some).
  pose proof prompt_length as PL. split.
  - intros i Hi. assert (N : forall j, j < 5 -> text (5 * i + j) = nth j (rule_tokens ns ny mv L R (nth i pairs (0, 0))) 0).
    { intros j Hj. rewrite E by lia. apply table_nth; auto. }
    pose proof (N 0 ltac:(lia)) as N0. rewrite Nat.add_0_r in N0.
    pose proof (N 1 ltac:(lia)). pose proof (N 2 ltac:(lia)). pose proof (N 3 ltac:(lia)). pose proof (N 4 ltac:(lia)).
    unfold then_state, then_symbol. destruct (nth i pairs (0, 0)) as [q a]. repeat split; assumption.
  - rewrite E by lia. unfold prompt. rewrite app_nth2 by (rewrite table_length; lia).
    rewrite table_length, Nat.sub_diag. reflexivity.
Qed.

(* In natural numbers: what the program of Universal.v writes after the prompt. *)
Theorem universal_continues t : continued U (t * w) prompt = whole_text t <->
  (forall s, 1 <= s <= t -> ~ repeats_gram ns ny mv w T0 h0 n s).
Proof.
  pose proof (wf_w _ _ _ _ _ start) as w4. pose proof prompt_length as PL.
  rewrite <- (universal_program_sharp symbols states its_symbols its_states ns ny mv (length pairs)
    (fun i => fst (nth i pairs (0, 0))) (fun i => snd (nth i pairs (0, 0))) w T0 h0 n t text); auto using text_table.
  - assert (TA : forall p, p < length prompt + t * w -> text p = nth p (continued U (t * w) prompt) 0)
      by (intros; apply text_at; auto).
    split.
    + intros E s c Hs Hc. rewrite TA, E by nia. rewrite whole_after by nia. unfold trace.
      rewrite Nat.div_add_l, Nat.div_small, Nat.add_0_r by lia. rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. auto.
    + intros E. apply nth_ext with (d := 0) (d' := 0); [rewrite continued_length, whole_length, PL; lia |].
      intros p Hp. rewrite continued_length in Hp. rewrite <- TA by auto.
      destruct (Nat.lt_ge_cases p (5 * length pairs + 1)) as [Hl | Hl].
      * rewrite whole_before by auto. apply text_prompt; auto using prompt_some. lia.
      * replace p with (5 * length pairs + 1 + (p - (5 * length pairs + 1))) by lia.
        set (q := p - (5 * length pairs + 1)). rewrite whole_after by (unfold q; lia). unfold trace.
        assert (q < w * (t + 1)) as Hq by (unfold q; lia).
        pose proof (Nat.div_lt_upper_bound q w (t + 1) ltac:(lia) Hq). pose proof (Nat.mod_upper_bound q w ltac:(lia)).
        rewrite <- E by lia.
        f_equal. pose proof (Nat.div_mod q w ltac:(lia)). lia.
  - intros i Hi. assert (I : In (nth i pairs (0, 0)) pairs) by (apply nth_In; auto).
    destruct (nth i pairs (0, 0)) as [q a]. apply pairs_all in I. exact I.
  - intros q a Hq Ha. assert (I : In (q, a) pairs) by (apply pairs_all; auto).
    apply In_nth with (d := (0, 0)) in I as (i & Hi & E). exists i. rewrite E. auto.
  - intros p Hp. rewrite text_prompt by (auto using prompt_some; lia). apply prompt_after; auto.
  - intros p Hp. apply text_next; [intros; apply universal_causal; auto | apply prompt_some | lia].
Qed.

(* The traced graph itself, on words of 64 bits, as long as positions fit a word. *)
Local Opaque output universal_graph.
Notation graph_output := (output wrap64 0 (fun _ => false) (fun _ _ => 0) (fun _ _ => 0) (fun _ _ => false) (universal_graph symbols states n)).
Lemma graph_continues c : forall text, text <> [] -> (Z.of_nat (length text + c + n + 4) <= 2 ^ 63 - 1)%Z ->
  write graph_output c (as_words text) = as_words (continued U c text).
Proof.
  induction c; intros tx Hne Hf; [reflexivity |]. cbn [write continued].
  assert (E : last (graph_output (as_words tx)) 0%Z = Z.of_nat (next_of U tx)).
  { destruct (universal_graph_is_program wrap64 (length tx + n + 4)
      ltac:(intros z Hz; apply wrap64_small; lia) 0 (fun _ => false) (fun _ _ => 0) (fun _ _ => 0) (fun _ _ => false) tx symbols states n
      ltac:(lia)) as [Pl Pn]. rewrite last_nth, Pl. apply Pn. destruct tx; simpl; [tauto | lia]. }
  rewrite E. replace (as_words tx ++ [Z.of_nat (next_of U tx)]) with (as_words (tx ++ [next_of U tx]))
    by (unfold as_words; rewrite map_app; reflexivity).
  apply IHc; [destruct tx; discriminate | rewrite app_length; simpl length; lia].
Qed.
Theorem universal_runs t : (Z.of_nat (length (whole_text t) + n + 4) <= 2 ^ 63 - 1)%Z ->
  (write graph_output (t * w) (as_words prompt) = as_words (whole_text t) <->
   (forall s, 1 <= s <= t -> ~ repeats_gram ns ny mv w T0 h0 n s)).
Proof.
  intros Hf. rewrite <- universal_continues. rewrite graph_continues; [| apply prompt_some |].
  - split; [| congruence]. unfold as_words. intros E.
    rewrite <- (map_id (continued U (t * w) prompt)), <- (map_id (whole_text t)).
    rewrite (map_ext _ (fun z => Z.to_nat (Z.of_nat z))) by (intros; symmetry; apply Nat2Z.id).
    rewrite (map_ext (fun z => z) (fun z => Z.to_nat (Z.of_nat z)) ) by (intros; symmetry; apply Nat2Z.id).
    rewrite <- !(map_map Z.of_nat Z.to_nat), E. auto.
  - rewrite whole_length in Hf. rewrite prompt_length. nia.
Qed.
End Whole.
