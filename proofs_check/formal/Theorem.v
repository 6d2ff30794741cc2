(* Everything on one page.

   `machine` and `run_of` say what is assumed: a Turing machine over the paper's tokens, and a well-formed first tape.
   Each theorem below is followed by what it rests on: "Closed under the global context" means nothing but Coq itself.
   The comment before each `Print Assumptions` says where it is proved, what it claims, and of what. *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Step Lookup Sharp Horizon Graph Words Running Guards.
Require Tokens Collision DeBruijn Tags Universal UniversalMachine UniversalGraph UniversalRunning.

(* ---- what is assumed --------------------------------------------------------------------------------------------- *)
Record machine := {
  base : nat;                                       (* number of token ids; 0 sep, 1 bos, 2 eos, 3 empt *)
  state : nat -> bool; symbol : nat -> bool;        (* which tokens are states, and symbols *)
  next_state : nat -> nat -> nat; next_symbol : nat -> nat -> nat; goes_right : nat -> nat -> bool;
  state_range : forall z, state z = true -> 4 <= z < base;
  symbol_range : forall z, symbol z = true -> 4 <= z < base;
  state_symbol : forall z, state z = true -> symbol z = false;
  next_is_state : forall q a, state q = true -> symbol a = true \/ a = bos \/ a = eos -> state (next_state q a) = true;
  next_is_symbol : forall q a, state q = true -> symbol a = true -> symbol (next_symbol q a) = true;
  keeps_bos : forall q, state q = true -> next_symbol q bos = bos;
  keeps_eos : forall q, state q = true -> next_symbol q eos = eos;
  bounces_right : forall q, state q = true -> goes_right q bos = true;
  bounces_left : forall q, state q = true -> goes_right q eos = false;
  state_below : forall q a, next_state q a < base;  (* also where it makes no sense: tables hold token ids *)
  symbol_below : forall q a, next_symbol q a < base }.

Record run_of (m : machine) := {
  width : nat;                                      (* tokens of a tape with its separator *)
  first : nat -> nat; head : nat;                   (* tape 0, and where its state token stands *)
  well_formed : wf (state m) (symbol m) width first head }.

Section Claims.
Variable m : machine.
Variable r : run_of m.
Notation w := (width m r).
Notation tape t := (T (next_state m) (next_symbol m) (goes_right m) (first m r) (head m r) t).
Notation text := (trace (next_state m) (next_symbol m) (goes_right m) w (first m r) (head m r)).
Notation program_of k n := (next_tokens (base m) (state m) (next_state m) (next_symbol m) (goes_right m) k n).
Notation graph_of wrap k n := (output wrap (base m) (state m) (next_state m) (next_symbol m) (goes_right m) (program k n)).
Notation repeats n t := (repeats_gram (next_state m) (next_symbol m) (goes_right m) w (first m r) (head m r) n t).
Notation key k n p := (key_at (base m) n k text p).
(* g is what the program writes after the first tape and its separator *)
Definition writes (k : packing) (n : nat) (g : sequence) : Prop :=
  (forall p, p < w -> g p = text p) /\ (forall p, w - 1 <= p -> g (p + 1) = program_of k n g p).

(* ---- the sharp theorem ------------------------------------------------------------------------------------------- *)
Theorem the_sharp_theorem k n t g : 1 <= n -> (k = Paper -> t <= base m ^ n) -> writes k n g ->
  ((forall p, p < (t + 1) * w -> g p = text p) <-> (forall s, 1 <= s <= t -> ~ repeats n s)).
Proof.
  intros Hn Hb [G0 G]. destruct m as [B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 H10 H11]. destruct r as [w T0 h W].
  exact (sharp B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 w T0 h W k n t g Hn Hb G0 G).
Qed.

Corollary no_bound k n t g : k <> Paper -> 1 <= n -> writes k n g ->
  ((forall p, p < (t + 1) * w -> g p = text p) <-> (forall s, 1 <= s <= t -> ~ repeats n s)).
Proof. intros Hk Hn G. apply (the_sharp_theorem k); auto. contradiction. Qed.

(* A prompt without its separator will do: that it comes next is always predicted. *)
Theorem the_separator_follows k n : 1 <= n -> program_of k n text (w - 2) = sep.
Proof.
  intros Hn. destruct m as [B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 H10 H11]. destruct r as [w T0 h W].
  exact (separator_follows B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 w T0 h W k n Hn).
Qed.

(* ---- any horizon ------------------------------------------------------------------------------------------------- *)
Theorem the_first_wrong_token k n g i : 1 <= n -> w - 1 <= i -> writes k n g ->
  let outbid i := exists j, w - 1 <= j /\ count text j <= count text i /\ key k n j = key k n i /\ text (i + 1) < text (j + 1) in
  ((forall p, p < i + 1 -> g p = text p) /\ g (i + 1) <> text (i + 1)) <-> (outbid i /\ forall i', w - 1 <= i' < i -> ~ outbid i').
Proof.
  intros Hn Hi [G0 G]. cbv zeta. destruct m as [B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 H10 H11]. destruct r as [w T0 h W].
  exact (horizon B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 w T0 h W k n g i Hn Hi G0 G).
Qed.

Theorem the_packing_ends n g : 1 <= n -> writes Paper n g -> exists p, p <= (base m ^ (2 * n) + 1) * w /\ g p <> text p.
Proof.
  intros Hn [G0 G]. destruct m as [B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 H10 H11]. destruct r as [w T0 h W].
  exact (paper_packing_ends B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 w T0 h W n g Hn G0 G).
Qed.

(* ---- the traced graph -------------------------------------------------------------------------------------------- *)
Theorem graph_on_whole_numbers k n tokens : 1 <= n -> (forall z, In z tokens -> z < base m) ->
  length (graph_of (fun z => z) k n (as_words tokens)) = length tokens /\ forall p, p < length tokens ->
  nth p (graph_of (fun z => z) k n (as_words tokens)) 0%Z = Z.of_nat (program_of k n (sequence_of tokens) p).
Proof.
  intros Hn Ht. destruct r as [w T0 h W]. assert (4 <= base m) by (pose proof (state_range m _ (wf_st _ _ _ _ _ W)); lia).
  apply whole_numbers; auto; apply m.
Qed.

Theorem graph_on_64_bits k n tokens : 1 <= n -> key_fits (base m) k n (length tokens) -> (forall z, In z tokens -> z < base m) ->
  length (graph_of wrap64 k n (as_words tokens)) = length tokens /\ forall p, p < length tokens ->
  nth p (graph_of wrap64 k n (as_words tokens)) 0%Z = Z.of_nat (program_of k n (sequence_of tokens) p).
Proof.
  intros Hn Hk Ht. destruct r as [w T0 h W]. assert (4 <= base m) by (pose proof (state_range m _ (wf_st _ _ _ _ _ W)); lia).
  apply words_64; auto; apply m.
Qed.

Theorem the_sharp_theorem_64 k n t : 1 <= n -> (k = Paper -> t <= base m ^ n) -> key_fits (base m) k n ((t + 1) * w) ->
  (write (graph_of wrap64 k n) (t * w) (as_words (map (first m r) (seq 0 w))) = map (fun p => Z.of_nat (text p)) (seq 0 ((t + 1) * w))
   <-> (forall s, 1 <= s <= t -> ~ repeats n s)).
Proof.
  intros Hn Hb Hk. destruct m as [B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 H10 H11]. destruct r as [w T0 h W].
  exact (sharp_64 B st sym ns ny mv H1 H2 H3 H4 H5 H6 H7 H8 H9 H10 H11 w T0 h W k n t Hn Hb Hk).
Qed.
End Claims.

Theorem the_size k n : length (program k n) = 201 + 18 * n.
Proof. apply size_linear. Qed.

(* ---- the bound of the paper's packing is exact, for every n ------------------------------------------------------- *)
Theorem the_bound_is_exact n : 1 <= n ->
  (forall t, ~ repeats_gram Collision.ns Collision.ny Collision.mv (Collision.width n) (Collision.tape_of n false) 1 n t) /\
  forall g, (forall p, p < Collision.width n -> g p = trace Collision.ns Collision.ny Collision.mv (Collision.width n) (Collision.tape_of n false) 1 p) ->
  (forall p, Collision.width n - 1 <= p -> g (p + 1) = next_tokens 9 Collision.st Collision.ns Collision.ny Collision.mv Paper n g p) ->
  (forall p, p < (9 ^ n + 1) * Collision.width n ->
     g p = trace Collision.ns Collision.ny Collision.mv (Collision.width n) (Collision.tape_of n false) 1 p) /\
  ~ (forall p, p < (9 ^ n + 2) * Collision.width n ->
     g p = trace Collision.ns Collision.ny Collision.mv (Collision.width n) (Collision.tape_of n false) 1 p).
Proof.
  intros Hn. split; [intros t; apply Collision.never_repeats; auto |]. intros g G0 G. apply Collision.bound_is_exact; auto.
Qed.

(* ---- what each rests on ------------------------------------------------------------------------------------------- *)
(** [Sharp.v] the program writes the trace through tape t iff none of the tapes 1..t repeats an (n+1)-gram | every machine, alphabet, tape length, n >= 1 and packing; t <= base**n for the paper's *)
Print Assumptions the_sharp_theorem.
(** [Sharp.v] as a tuple, or with the count on top, the key sets no limit to the number of steps | every machine, tape, n >= 1 and number of steps *)
Print Assumptions no_bound.
(** [Sharp.v] after the first tape the program predicts its separator: a prompt may leave it out | every machine, tape, n >= 1 and packing *)
Print Assumptions the_separator_follows.
(** [Tokens.v] a key of the count and each token for itself, as packing="tuple" has it, makes the same predictions as a pair of count and hash | every machine, text of tokens and n *)
Print Assumptions Tokens.next_tokens_of_tokens.
(** [Horizon.v] the first wrong token is the first whose key is held by a place on its tape or an earlier one that is followed by a larger token | every machine, tape, n >= 1, packing and horizon *)
Print Assumptions the_first_wrong_token.
(** [Horizon.v] what is predicted is the largest token that follows the key | every machine, tape, n >= 1, packing and horizon *)
Print Assumptions predicts_largest.
(** [Collision.v] past base**n the paper's packing fails: right through tape base**n, wrong on the next, no gram repeated | every n >= 1, with its machine and tape *)
Print Assumptions the_bound_is_exact.
(** [Horizon.v] with the paper's packing no run at all is right past tape base**(2n) | every machine, tape and n >= 1 *)
Print Assumptions the_packing_ends.
(** [Words.v] the traced graph computes the program at every place | every machine, text of tokens, n >= 1 and packing; whole numbers *)
Print Assumptions graph_on_whole_numbers.
(** [Words.v] with int64 wrap-around it computes the same where the key fits | every machine, text of tokens, n >= 1 and packing within key_fits *)
Print Assumptions graph_on_64_bits.
(** [Running.v] the graph on int64, run on its own output, writes the trace iff no gram repeats | every machine, tape, n >= 1 and packing within key_fits; t <= base**n for the paper's *)
Print Assumptions the_sharp_theorem_64.
(** [Graph.v] the program has 201 + 18 n nodes | every n and packing *)
Print Assumptions the_size.
(** [DeBruijn.v] k tags make a row of k**(n+1) + n cells that repeats no (n+1)-gram | every k >= 1 and n *)
Print Assumptions DeBruijn.tags_exist.
(** [DeBruijn.v] and no longer one: k is the least number of tags | every k and n *)
Print Assumptions DeBruijn.tags_bound.
(** [Tags.v] tagged cells: every machine is simulated within its cells, for any number of steps | every machine, tape of up to k**(n+1) + n cells, k tags, n >= 1 and packing; base**n steps with the paper's *)
Print Assumptions Tags.every_machine_simulated.
(** [UniversalMachine.v] the universal program predicts what next_token_turing does for the machine in its prompt | every machine and text, at every token it writes *)
Print Assumptions UniversalMachine.universal_is_next_tokens.
(** [UniversalMachine.v] the universal program writes the trace of the machine in its prompt iff no gram repeats | every machine, tape, n >= 1 and number of steps *)
Print Assumptions UniversalMachine.universal_sharp.
(** [UniversalGraph.v] the traced universal graph, on int64, computes the universal program at every place | every text, n and number of symbols and states; positions fit a word *)
Print Assumptions UniversalGraph.universal_graph_is_program.
(** [UniversalRunning.v] the universal graph on int64, given a machine's rules and a tape as one list of tokens, and run on its own output, writes the machine's tapes iff no gram repeats | every machine, order of its rules, tape, n >= 1 and number of steps; positions fit a word *)
Print Assumptions UniversalRunning.universal_runs.
(** [Guards.v] the hypotheses hold of a machine and a tape: the theorem speaks of something | a machine of one symbol and one state *)
Print Assumptions hypotheses_hold.
(** [Guards.v] there is a tape that repeats a gram | the same machine, three cells *)
Print Assumptions a_tape_repeats.
(** [Guards.v] and one that does not | the same machine, one cell *)
Print Assumptions a_tape_does_not.
(** [Tags.v] tags that repeat a pair do not help: the program goes wrong on the first tape | one symbol, one state, four cells with the same tag *)
Print Assumptions Tags.Guards.same_tag_everywhere_fails.
(** [Tags.v] a rule that does not keep the tag makes a tape that repeats a gram | one symbol, one state, four cells *)
Print Assumptions Tags.Guards.a_lost_tag_repeats.
(** [UniversalGraph.v] a table with a missing rule is not run | one symbol, one state *)
Print Assumptions UniversalGraph.UniversalGuards.a_rule_is_missing.
(** [UniversalGraph.v] nor one with two rules that differ | one symbol, one state *)
Print Assumptions UniversalGraph.UniversalGuards.two_rules_differ.
(** [UniversalGraph.v] nor any, by the program without its mask | one symbol, one state *)
Print Assumptions UniversalGraph.UniversalGuards.the_table_is_masked.
