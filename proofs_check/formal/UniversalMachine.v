(* The universal program and a machine's table: the program runs every machine that stands in its prompt.

   Universal.v speaks of what a table says; here the table is that of a machine: every rule is one of the machine's, in any
   order, and none is missing. Then
   - `universal_is_next_tokens`: on every text of the machine's tokens the universal program predicts what `next_tokens` of
     this machine predicts (unbounded or tuple packing), at every token after the table;
   - `universal_sharp`: what it writes after the prompt is the machine's run through tape t if and only if none of the
     tapes 1..t repeats an (n+1)-gram, for any t;
   - `universal_program_sharp`: the same with the token numbers of rasp.programs.universal, where the program may have room
     for more symbols and states than the machine has.
   At the end, what happens where the hypotheses fail: a missing rule, two rules that differ, a table that is not masked. *)
From Coq Require Import Arith Lia List Bool.
Import ListNotations.
Require Import Rasp Machine Program Sharp Tags Universal.

(* ---- a machine, its table, and the text that the program writes -------------------------------------------------- *)
Section Prompt.
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
Variable stU : nat -> bool.
Variables L R : nat.
Hypothesis B4 : 4 <= B.
Hypothesis stU_ok : forall z, ok st sym z -> stU z = st z.
Hypothesis stU_empt : stU empt = false.
Hypothesis LR : L <> R.
Hypothesis L_ok : ~ ok st sym L.
Hypothesis R_ok : ~ ok st sym R.

(* The table of the machine: rules only say what the machine does, in any order, and none is missing. *)
Variable rules : nat.
Variables for_state for_symbol : nat -> nat.
Definition readable (a : nat) := sym a = true \/ a = bos \/ a = eos.
Definition true_rules := forall i, i < rules -> st (for_state i) = true /\ readable (for_symbol i).
Definition complete := forall q a, st q = true -> readable a -> exists i, i < rules /\ for_state i = q /\ for_symbol i = a.
Hypothesis T : true_rules.
Hypothesis C : complete.
Definition then_state i := ns (for_state i) (for_symbol i).
Definition then_symbol i := ny (for_state i) (for_symbol i).
Definition then_right i := flag (mv (for_state i) (for_symbol i)).
Definition holds_table (x : sequence) := (forall i, i < rules ->
  x (5 * i) = for_state i /\ x (5 * i + 1) = for_symbol i /\ x (5 * i + 2) = then_state i /\
  x (5 * i + 3) = then_symbol i /\ x (5 * i + 4) = if mv (for_state i) (for_symbol i) then R else L) /\ x (5 * rules) = sep.

Notation found := (found rules for_state for_symbol).
Lemma found_here f q a : st q = true -> readable a -> found (fun i => f (for_state i) (for_symbol i)) q a = f q a.
Proof.
  intros Hq Ha. unfold Universal.found. apply Nat.le_antisymm.
  - apply max_le. intros v I. apply in_map_iff in I as (i & <- & I). apply filter_In in I as [_ E].
    rewrite andb_true_iff, !Nat.eqb_eq in E. destruct E as [-> ->]. auto.
  - destruct (C q a Hq Ha) as (i & Hi & E1 & E2). apply le_max, in_map_iff. exists i. split; [congruence |].
    apply filter_In. rewrite in_seq, andb_true_iff, !Nat.eqb_eq. repeat split; auto; lia.
Qed.
Lemma found_nowhere f q a : ~ readable a -> found f q a = 0.
Proof.
  intros Ha. unfold Universal.found. destruct (filter _ _) as [| i l] eqn:E; auto. exfalso.
  assert (I : In i (i :: l)) by (left; auto). rewrite <- E in I. apply filter_In in I as [I F]. apply in_seq in I.
  rewrite andb_true_iff, !Nat.eqb_eq in F. destruct F as [_ <-]. apply Ha, T. lia.
Qed.
Definition nsF q a := found then_state q a.
Definition nyF q a := found then_symbol q a.
Definition mvF q a := found then_right q a =? 1.
Lemma nsF_here q a : st q = true -> readable a -> nsF q a = ns q a. Proof. apply found_here. Qed.
Lemma nyF_here q a : st q = true -> readable a -> nyF q a = ny q a. Proof. apply found_here. Qed.
Lemma mvF_here q a : st q = true -> readable a -> mvF q a = mv q a.
Proof.
  intros Hq Ha. unfold mvF, then_right. rewrite (found_here (fun q a => flag (mv q a))) by auto. destruct (mv q a); auto.
Qed.
Lemma readable_dec a : {readable a} + {~ readable a}.
Proof.
  unfold readable. destruct (sym a) eqn:E; [auto |]. destruct (Nat.eq_dec a bos), (Nat.eq_dec a eos); auto.
  right. intros [? | [? | ?]]; congruence.
Qed.
Lemma readable_ok a : readable a -> ok st sym a. Proof. unfold readable, ok. tauto. Qed.

Lemma rules_ok i : i < rules -> forall z, z = for_state i \/ z = for_symbol i \/ z = then_state i \/ z = then_symbol i ->
  ok st sym z /\ z <> sep.
Proof.
  intros Hi z Hz. destruct (T i Hi) as [Hq Ha].
  assert (St : forall z, st z = true -> ok st sym z /\ z <> sep)
    by (intros u Hu; split; [unfold ok; auto | apply st_range in Hu; lia]).
  assert (Rd : forall z, readable z -> ok st sym z /\ z <> sep).
  { intros u Hu. split; [apply readable_ok; auto |]. destruct Hu as [Hu | [-> | ->]]; [apply sym_range in Hu |..]; lia. }
  destruct Hz as [-> | [-> | [-> | ->]]]; [apply St; auto | apply Rd; auto | apply St, ns_state; auto | apply Rd].
  unfold then_symbol. destruct Ha as [Ha | [-> | ->]]; [left; auto | right; left; auto | right; right; auto].
Qed.
Lemma rules_flag i : i < rules -> then_right i <= 1. Proof. intros _. apply flag_le. Qed.
Lemma rules_some q : st q = true -> 1 <= rules.
Proof. intros Hq. destruct (C q bos Hq) as (i & Hi & _); [right; left; auto | lia]. Qed.

(* For every text of the machine's tokens. The machine's functions are 0 where they do not apply (as in rasp.machines). *)
Theorem universal_is_next_tokens k n x p : 1 <= rules -> holds_table x -> k <> Paper ->
  (forall q a, st q = true -> ok st sym a -> ~ readable a -> ns q a = 0 /\ ny q a = 0 /\ mv q a = false) ->
  (forall j, j <= p -> ok st sym (x (5 * rules + 1 + j))) ->
  next_tokens_universal stU L R n x (5 * rules + 1 + p) =
  next_tokens B st ns ny mv k n (fun j => x (5 * rules + 1 + j)) p.
Proof.
  intros R1 (X & XS) Hk Off Y. apply universal_same with (sym := sym) (for_state := for_state) (for_symbol := for_symbol)
    (then_state := then_state) (then_symbol := then_symbol) (then_right := then_right) (N := p); auto; try exact rules_ok; try exact rules_flag.
  - intros q a Hq Ha. destruct (readable_dec a) as [D | D]; [symmetry; apply nsF_here; auto |].
    rewrite found_nowhere by auto. apply Off; auto.
  - intros q a Hq Ha. destruct (readable_dec a) as [D | D]; [symmetry; apply nyF_here; auto |].
    rewrite found_nowhere by auto. apply Off; auto.
  - intros q a Hq Ha. destruct (readable_dec a) as [D | D]; [symmetry; apply mvF_here; auto |].
    rewrite found_nowhere by auto. apply Off; auto.
  - intros i Hi. destruct (X i Hi) as (X0 & X1 & X2 & X3 & X4). repeat split; auto. rewrite X4. unfold then_right.
    destruct (mv _ _); auto.
Qed.

Variables w h0 : nat.
Variable T0 : tape.
Hypothesis start : wf st sym w T0 h0.
Lemma rules1 : 1 <= rules. Proof. apply (rules_some (T0 h0)), start. Qed.

(* Free-running, from the prompt: the table, a separator, the tape, a separator. *)
Theorem universal_sharp n t g : 1 <= n -> holds_table g -> (forall p, p < w -> g (5 * rules + 1 + p) = T0 p) ->
  (forall p, 5 * rules + w <= p -> g (p + 1) = next_tokens_universal stU L R n g p) ->
  ((forall s c, s <= t -> c < w -> g (5 * rules + 1 + (s * w + c)) = Machine.T ns ny mv T0 h0 s c) <->
   (forall s, 1 <= s <= t -> ~ repeats_gram ns ny mv w T0 h0 n s)).
Proof.
  intros Hn (X & XS) G0 G. pose proof rules1 as R1. pose proof (wf_w _ _ _ _ _ start) as w4.
  set (y := after rules g). assert (YX : forall p, y p = g (5 * rules + 1 + p)) by reflexivity.
  assert (Same : forall p, (forall j, j <= p -> ok st sym (y j)) ->
    next_tokens_universal stU L R n g (5 * rules + 1 + p) = next_tokens B st nsF nyF mvF Tuple n y p /\
    ok st sym (next_tokens_universal stU L R n g (5 * rules + 1 + p))).
  { intros p Y.
    assert (X' : forall i, i < rules -> g (5 * i) = for_state i /\ g (5 * i + 1) = for_symbol i /\ g (5 * i + 2) = then_state i /\
      g (5 * i + 3) = then_symbol i /\ g (5 * i + 4) = if then_right i =? 1 then R else L).
    { intros i Hi. destruct (X i Hi) as (X0 & X1 & X2 & X3 & X4). repeat split; auto. rewrite X4. unfold then_right.
      destruct (mv _ _); auto. }
    split; [eapply universal_same | eapply written_ok with (ns := nsF) (ny := nyF) (mv := mvF)];
      try exact X'; try exact Y; try exact rules_ok; try exact rules_flag; try eassumption; auto; discriminate. }
  (* all that is written are the machine's tokens *)
  assert (Y : forall p, ok st sym (y p)).
  { intros p. induction p as [p IH] using (well_founded_induction lt_wf). destruct (Nat.lt_ge_cases p w) as [Hp | Hp].
    - rewrite YX, G0 by auto. destruct start as [_ Hh Hs Hb Hp' He Hy]. unfold ok.
      destruct (Nat.eq_dec p 0) as [-> | ?]; [auto |]. destruct (Nat.eq_dec p h0) as [-> | ?]; [auto |].
      destruct (Nat.eq_dec p (last_cell w h0)) as [-> | ?]; [auto |]. destruct (Nat.eq_dec p (w - 1)) as [-> | ?]; [auto |].
      do 3 right. left. apply Hy; lia.
    - rewrite YX. replace (5 * rules + 1 + p) with (5 * rules + 1 + (p - 1) + 1) by lia. rewrite G by lia.
      apply Same. intros j Hj. apply IH. lia. }
  (* the machine as the table gives it *)
  assert (Sharp : (forall p, p < (t + 1) * w -> y p = Machine.trace nsF nyF mvF w T0 h0 p) <->
    (forall s, 1 <= s <= t -> ~ repeats_gram nsF nyF mvF w T0 h0 n s)).
  { apply (sharp B st sym nsF nyF mvF st_range sym_range st_sym) with (k := Tuple); try exact start; try exact Hn; try discriminate.
    - intros q a Hq Ha. rewrite nsF_here by auto. auto.
    - intros q a Hq Ha. rewrite nyF_here by (unfold readable; auto). auto.
    - intros q Hq. rewrite nyF_here by (unfold readable; auto). auto.
    - intros q Hq. rewrite nyF_here by (unfold readable; auto). auto.
    - intros q Hq. rewrite mvF_here by (unfold readable; auto). auto.
    - intros q Hq. rewrite mvF_here by (unfold readable; auto). auto.
    - intros p Hp. rewrite YX, G0 by auto. unfold trace. rewrite Nat.div_small, Nat.mod_small by auto. auto.
    - intros p Hp. rewrite YX. replace (5 * rules + 1 + (p + 1)) with (5 * rules + 1 + p + 1) by lia. rewrite G by lia.
      apply Same. intros j Hj. apply Y. }
  assert (ET : forall s c, c < w -> Machine.T nsF nyF mvF T0 h0 s c = Machine.T ns ny mv T0 h0 s c).
  { intros s. refine (proj2 (tags_erased nsF nyF mvF _ st sym ns ny mv _ _ _ _ _ _ _ (fun z => z) _ _ _ w h0 T0 _ T0 _ s));
      try eassumption; auto; intros q a Hq Ha; symmetry; [apply nsF_here | apply nyF_here | apply mvF_here]; auto. }
  assert (TR : forall s c, c < w -> Machine.trace nsF nyF mvF w T0 h0 (s * w + c) = Machine.T ns ny mv T0 h0 s c).
  { intros s c Hc. rewrite <- ET by auto. unfold trace.
    rewrite Nat.div_add_l, Nat.div_small, Nat.add_0_r by lia. rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. auto. }
  assert (RP : forall s, repeats_gram nsF nyF mvF w T0 h0 n s <-> repeats_gram ns ny mv w T0 h0 n s).
  { intros s. unfold repeats_gram. split; intros (a & b & Hab & Hb & E); exists a, b; repeat split; auto; intros m Hm;
      specialize (E m Hm); rewrite !ET in * by lia; auto. }
  split.
  - intros A s Hs F. apply RP in F. revert s Hs F. apply Sharp. intros p Hp.
    pose proof (Nat.div_mod p w ltac:(lia)) as D. pose proof (Nat.mod_upper_bound p w ltac:(lia)).
    set (s := p / w) in *. set (c := p mod w) in *. rewrite D, (Nat.mul_comm w s), TR by auto. rewrite YX. apply A; auto. nia.
  - intros A s c Hs Hc. rewrite <- TR by auto. rewrite <- YX. apply Sharp; [| nia]. intros u Hu F. apply (A u Hu), RP, F.
Qed.
End Prompt.

(* ---- the numbers of tokens in rasp.programs.universal ------------------------------------------------------------ *)
(* A program for so many symbols and states, and a machine that has at most as many: tokens are the markers, the program's
   symbols, the program's states, L, R. *)
Theorem universal_program_sharp symbols states its_symbols its_states ns ny mv rules for_state for_symbol w T0 h0 n t g :
  its_symbols <= symbols -> its_states <= states ->
  let sym := is_symbol its_symbols in let st := is_state_of symbols its_states in
  let L := 4 + symbols + states in let R := 5 + symbols + states in
  (forall q a, st q = true -> readable sym a -> st (ns q a) = true) ->
  (forall q a, st q = true -> sym a = true -> sym (ny q a) = true) ->
  (forall q, st q = true -> ny q bos = bos /\ ny q eos = eos /\ mv q bos = true /\ mv q eos = false) ->
  true_rules st sym rules for_state for_symbol -> complete st sym rules for_state for_symbol ->
  wf st sym w T0 h0 -> 1 <= n -> holds_table ns ny mv L R rules for_state for_symbol g ->
  (forall p, p < w -> g (5 * rules + 1 + p) = T0 p) ->
  (forall p, 5 * rules + w <= p -> g (p + 1) = next_tokens_universal (is_state_of symbols states) L R n g p) ->
  ((forall s c, s <= t -> c < w -> g (5 * rules + 1 + (s * w + c)) = Machine.T ns ny mv T0 h0 s c) <->
   (forall s, 1 <= s <= t -> ~ repeats_gram ns ny mv w T0 h0 n s)).
Proof.
  intros Hs Hq sym st L R NS NY Ends TR CO W Hn X G0 G.
  assert (St : forall z, st z = true -> 4 + symbols <= z < 4 + symbols + its_states) by (intros z; apply is_state_spec).
  assert (Sy : forall z, sym z = true -> 4 <= z < 4 + its_symbols) by (intros z; apply is_symbol_spec).
  assert (Ok : forall z, ok st sym z -> z < 3 \/ 4 <= z < 4 + its_symbols \/ 4 + symbols <= z < 4 + symbols + its_states)
    by (intros z [-> | [-> | [-> | [H | H]]]]; auto).
  apply (universal_sharp (4 + symbols + states) st sym ns ny mv) with (stU := is_state_of symbols states) (L := L) (R := R)
    (for_state := for_state) (for_symbol := for_symbol); auto; try lia; try (intros q Q; apply Ends; auto).
  - intros z H. apply St in H. lia.
  - intros z H. apply Sy in H. lia.
  - intros z H. apply St in H. destruct (sym z) eqn:E; auto. apply Sy in E. lia.
  - intros z H. apply Ok in H. unfold st. destruct (is_state_of symbols states z) eqn:E, (is_state_of symbols its_states z) eqn:F; auto; exfalso.
    + apply is_state_spec in E. rewrite <- not_true_iff_false, is_state_spec in F. lia.
    + apply is_state_spec in F. rewrite <- not_true_iff_false, is_state_spec in E. lia.
  - intros H. apply Ok in H. unfold L in H. lia.
  - intros H. apply Ok in H. unfold R in H. lia.
Qed.

