(* The universal program as Python traces it: the graph, and that running it gives the program of Universal.v.

   The output of the graph of UniversalBuild.v, on whole numbers or on words of 64 bits, is the prediction of Universal.v at
   every place of every text (`universal_graph_is_program`): its only sums are positions plus a shift, so the text's length
   must fit a word, no more. As in Words.v, `wp` carries what is known of a function's result from node to node.
   At the end the graph runs: on a table as it should be, and on wrong ones. *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Lookup Graph Words Tags Universal UniversalBuild.

(* ---- running it -------------------------------------------------------------------------------------------------- *)
Section Run.
Variable wrap : Z -> Z.
Variable M : nat.
Hypothesis fits : forall z, (0 <= z <= Z.of_nat M)%Z -> wrap z = z.
Variable B : nat.
Variable st : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Variable text : list nat.
Variables symbols states n : nat.
Notation long := (length text).
Hypothesis room : long + n + 4 <= M.
Notation wp := (wp wrap B st ns ny mv text).
Notation is := (is text).
Notation holds := (holds text).
Notation picks := (picks text).
Implicit Type Q : nat -> list value -> Prop.

Ltac step := apply wp_bind.
Ltac ready := repeat first [apply Forall2_cons; [eassumption |] | apply Forall2_nil].
Ltac grow E := repeat match goal with
  | H : holds ?env _ _ |- _ => match type of E with extends env _ => apply (holds_grow _ _ _ _ _ E) in H end
  | H : is ?env _ _ |- _ => match type of E with extends env _ => apply (holds_grow _ _ _ _ _ E) in H end
  | H : picks ?env _ _ |- _ => match type of E with extends env _ => apply (picks_grow _ _ _ _ _ E) in H end
  | H : Forall2 (holds ?env) _ _ |- _ => match type of E with extends env _ => apply (all_grow _ _ _ _ _ E) in H end
  | H : extends ?old ?env |- _ => match type of E with extends env _ => apply (fun h => extends_trans _ _ _ h E) in H end
  end.
Ltac keep E := grow E; clear E.
Ltac finish K := apply K; [eapply extends_trans; eassumption | assumption].
Notation nats f := (fun q => Z.of_nat (f q)).

Lemma do_shift env Q d i f m : m <= n + 4 -> is env i f ->
  (forall j env', extends env env' -> is env' j (shift_or d f m) -> Q j env') -> wp (BuildUniversal.shift_or d i m) env Q.
Proof.
  intros Hm F K. unfold BuildUniversal.shift_or. pose proof (extends_refl env) as X.
  step. apply do_indices. intros a e1 E1 A. keep E1.
  step. apply do_map with (ss := [nats indices]) (f := fun q => Z.of_nat (q + m)); [ready | |].
  { intros q Hq. unfold indices. destruct m; simpl; [f_equal; lia |]. rewrite fits by lia. lia. }
  intros k e2 E2 Kk. keep E2.
  step. apply do_indices. intros b e3 E3 Bb. keep E3.
  step. apply do_select with (kss := [fun q => Z.of_nat (q + m)]) (qss := [nats indices])
    (pred := fun j q => j + m =? q); [ready | ready | |].
  { intros q j Hj. simpl. rewrite nonzero_truth. apply eqb_of_nat. }
  intros s e4 E4 S. keep E4.
  eapply do_aggr with (g := nats (shift_or d f m)); [eassumption | eassumption | | |].
  - intros q j Hq Hj. apply filter_In in Hj as [Hj _]. apply in_seq in Hj. lia.
  - intros q Hq. rewrite shift_or_spec, filter_shift.
    destruct (Nat.leb_spec (0 + m) q), (Nat.ltb_spec q (0 + Datatypes.S q + m)), (Nat.ltb_spec q m); try lia; auto.
    simpl. rewrite Z.add_0_r, Z.quot_1_r. auto.
  - intros j e5 E5 J. apply K; auto. eapply extends_trans; eauto.
Qed.
Lemma do_shift_right env Q i f m : m <= 4 -> is env i f ->
  (forall j env', extends env env' -> is env' j (shift_right f m) -> Q j env') -> wp (Build.shift_right i m) env Q.
Proof. intros Hm. apply (do_shift env Q 0). lia. Qed.
Lemma do_is_token env Q a fa t : is env a fa ->
  (forall j env', extends env env' -> is env' j (is_token fa t) -> Q j env') -> wp (BuildUniversal.is_token a t) env Q.
Proof. intros A K. apply do_equal_to with (fa := fa); auto. Qed.
Lemma do_mask env Q a b fa fb v : is env a fa -> is env b fb ->
  (forall j env', extends env env' -> is env' j (mask fa fb v) -> Q j env') -> wp (BuildUniversal.mask a b v) env Q.
Proof.
  intros A Bb K. unfold BuildUniversal.mask. pose proof (extends_refl env) as X.
  step. apply do_full. intros f e1 E1 F. keep E1.
  eapply do_where; [exact Bb | exact A | exact F |]. intros r e2 E2 R. finish K.
Qed.

(* ---- the rules, the next tape, the grams ------------------------------------------------------------------------- *)
Notation L := (4 + symbols + states).
Notation R := (5 + symbols + states).
Notation stU := (is_state_of symbols states).
Implicit Type f : BuildUniversal.found.
Definition is_rule_at (env : list value) (f : BuildUniversal.found) (r : rule) : Prop :=
  let '(h, q, a, m) := f in is env h (is_head r) /\ is env q (next_state r) /\ is env a (next_symbol r) /\ is env m (move_R r).
Lemma rule_grow env env' f r : extends env env' -> is_rule_at env f r -> is_rule_at env' f r.
Proof.
  intros E. destruct f as [[[h q] a] m]. intros (A1 & A2 & A3 & A4). repeat split; eapply holds_grow; eassumption.
Qed.

Lemma do_look_up env (Q : BuildUniversal.found -> list value -> Prop) x c fx fc : is env x fx -> is env c fc ->
  (forall f env', extends env env' -> is_rule_at env' f (look_up stU L R fx fc) -> Q f env') ->
  wp (BuildUniversal.look_up symbols states x c) env Q.
Proof.
  intros Hx Hc K. unfold BuildUniversal.look_up. pose proof (extends_refl env) as X.
  step. eapply do_is_token; [exact Hx |]. intros l e1 E1 Hl. keep E1.
  step. eapply do_is_token; [exact Hx |]. intros r e2 E2 Hr. keep E2.
  step. eapply do_bor; [exact Hl | exact Hr |]. intros ir e3 E3 Hir. keep E3.
  step. eapply (do_shift_right _ _ _ _ 4); [lia | exact Hx |]. intros four e4 E4 H4. keep E4.
  step. eapply do_mask; [exact H4 | exact Hir |]. intros rs e5 E5 Hrs. keep E5.
  step. eapply (do_shift_right _ _ _ _ 3); [lia | exact Hx |]. intros ry e6 E6 Hry. keep E6.
  step. eapply (do_shift_right _ _ _ _ 1); [lia | exact Hc |]. intros un e7 E7 Hun. keep E7.
  step. eapply do_select_all with (fmore := [(shift_right fx 3, shift_right fc 1)]); [exact Hrs | exact Hc | simpl; ready | simpl; ready |].
  intros s e8 E8 S. keep E8. cbn [map fst snd] in S.
  step. apply do_map with (ss := [nats fc]) (f := nats (tok_map fc (fun z => flag (stU z)))); [ready | |].
  { intros p Hp. cbn [BuildUniversal.is_state ev operate nth map]. unfold tok_map, is_state_of.
    replace (Z.of_nat (fc p) <? Z.of_nat (4 + symbols + states))%Z with (fc p <? 4 + symbols + states).
    2:{ destruct (Nat.ltb_spec (fc p) (4 + symbols + states)), (Z.ltb_spec (Z.of_nat (fc p)) (Z.of_nat (4 + symbols + states))); auto; lia. }
    replace (Z.of_nat (4 + symbols) <=? Z.of_nat (fc p))%Z with (4 + symbols <=? fc p).
    2:{ destruct (Nat.leb_spec (4 + symbols) (fc p)), (Z.leb_spec (Z.of_nat (4 + symbols)) (Z.of_nat (fc p))); auto; lia. }
    destruct (4 + symbols <=? fc p), (fc p <? 4 + symbols + states); reflexivity. }
  intros h e9 E9 Hh. keep E9.
  step. eapply (do_shift_right _ _ _ _ 2); [lia | exact Hx |]. intros two e10 E10 H2. keep E10.
  step. eapply do_max; [exact S | exact H2 |]. intros q e11 E11 Hq. keep E11.
  step. eapply (do_shift_right _ _ _ _ 1); [lia | exact Hx |]. intros one e12 E12 H1. keep E12.
  step. eapply do_max; [exact S | exact H1 |]. intros a e13 E13 Ha. keep E13.
  step. eapply do_is_token; [exact Hx |]. intros ri e14 E14 Hri. keep E14.
  step. eapply do_max; [exact S | exact Hri |]. intros m e15 E15 Hm. keep E15.
  apply wp_ret, K; [assumption |]. exact (conj Hh (conj Hq (conj Ha Hm))).
Qed.

Lemma do_shifted env (Q : BuildUniversal.found -> list value -> Prop) f r p : p <= 4 -> is_rule_at env f r ->
  (forall f' env', extends env env' -> is_rule_at env' f' (shifted r p) -> Q f' env') -> wp (BuildUniversal.shifted f p) env Q.
Proof.
  intros Hp F K. destruct f as [[[h q] a] m]. destruct F as (Hh & Hq & Ha & Hm). unfold BuildUniversal.shifted.
  pose proof (extends_refl env) as X.
  step. eapply do_shift_right; [exact Hp | exact Hh |]. intros h' e1 E1 Hh'. keep E1.
  step. eapply do_shift_right; [exact Hp | exact Hq |]. intros q' e2 E2 Hq'. keep E2.
  step. eapply do_shift_right; [exact Hp | exact Ha |]. intros a' e3 E3 Ha'. keep E3.
  step. eapply do_shift_right; [exact Hp | exact Hm |]. intros m' e4 E4 Hm'. keep E4.
  apply wp_ret, K; [assumption |]. exact (conj Hh' (conj Hq' (conj Ha' Hm'))).
Qed.
Lemma do_get_next env (Q : nat * nat * nat -> list value -> Prop) c fc f r p : p <= 4 -> is env c fc -> is_rule_at env f r ->
  (forall h x m env', extends env env' -> is env' h (is_head (shifted r p)) -> is env' x (next_here fc r p) ->
     is env' m (moves_here r p) -> Q (h, x, m) env') -> wp (BuildUniversal.get_next c f p) env Q.
Proof.
  intros Hp Hc F K. unfold BuildUniversal.get_next. pose proof (extends_refl env) as X.
  step. eapply do_shifted; [exact Hp | exact F |]. intros f1 e1 E1 F1. apply (rule_grow _ _ _ _ E1) in F. keep E1.
  step. eapply (do_shifted _ _ _ _ (p - 1)); [lia | exact F |]. intros f2 e2 E2 F2. apply (rule_grow _ _ _ _ E2) in F1. keep E2.
  step. eapply do_shift_right; [exact Hp | exact Hc |]. intros c' e3 E3 Hc'.
  apply (rule_grow _ _ _ _ E3) in F1. apply (rule_grow _ _ _ _ E3) in F2. keep E3.
  destruct f1 as [[[h q] a] m]. destruct F1 as (Hh & Hq & Ha & Hm). destruct f2 as [[[h2 q2] a2] m2]. destruct F2 as (Hh2 & _ & Ha2 & _).
  step. eapply do_where; [exact Hh | exact Hq | exact Hc' |]. intros x1 e4 E4 X1. keep E4.
  step. eapply do_where; [exact Hh2 | exact Ha2 | exact X1 |]. intros x2 e5 E5 X2. keep E5.
  step. eapply do_band; [exact Hm | exact Hh |]. intros mr e6 E6 Mr. keep E6.
  apply wp_ret, K; assumption.
Qed.
Lemma do_next_tape env Q c fc f r s : s <= 4 -> is env c fc -> is_rule_at env f r ->
  (forall j env', extends env env' -> is env' j (next_tape_found fc r s) -> Q j env') -> wp (BuildUniversal.next_tape c f s) env Q.
Proof.
  intros Hs Hc F K. unfold BuildUniversal.next_tape. pose proof (extends_refl env) as X.
  step. eapply do_get_next; [exact Hs | exact Hc | exact F |]. intros h x m e1 E1 Hh Hx Hm. apply (rule_grow _ _ _ _ E1) in F. keep E1.
  step. eapply (do_get_next _ _ _ _ _ _ (s - 1)); [lia | exact Hc | exact F |]. intros h2 x2 m2 e2 E2 Hh2 Hx2 Hm2. keep E2.
  eapply (do_move_head wrap B st ns ny mv text M fits ltac:(lia));
    [exact Hh | exact Hx | exact Hm | exact Hh2 | exact Hx2 | exact Hm2 |]. intros j e3 E3 J. finish K.
Qed.

Lemma do_last_tokens : forall many env (Q : list nat -> list value -> Prop) x start over back fx fs fo,
  back + many <= n + 4 -> is env x fx -> is env start fs -> is env over fo ->
  (forall js env', extends env env' -> Forall2 (holds env') js (map (fun g => nats g) (last_tokens fx fs fo back many)) -> Q js env') ->
  wp (BuildUniversal.last_tokens x start over back many) env Q.
Proof.
  induction many; intros env Q x start over back fx fs fo Hb Hx Hs Ho K; cbn [BuildUniversal.last_tokens].
  - apply wp_ret, K; [apply extends_refl | constructor].
  - pose proof (extends_refl env) as X.
    step. eapply do_shift; [| exact Hs |]; [lia |]. intros nw e1 E1 Hn. keep E1.
    step. eapply do_bor; [exact Ho | exact Hn |]. intros o e2 E2 Ho'. keep E2.
    step. apply (do_full _ _ _ _ _ _ _ _ _ 0). intros z e3 E3 Hz. keep E3.
    step. eapply (do_shift _ _ 0); [| exact Hx |]; [lia |]. intros t e4 E4 Ht. keep E4.
    step. eapply do_where; [exact Ho' | exact Hz | exact Ht |]. intros t' e5 E5 Ht'. keep E5.
    step. eapply IHmany; [| exact Hx | exact Hs | exact Ho' |]; [lia |]. intros js e6 E6 J. keep E6.
    apply wp_ret, K; [assumption |]. cbn [last_tokens map]. constructor; assumption.
Qed.
Lemma do_tape_n_gram env (Q : list nat -> list value -> Prop) x fx : is env x fx ->
  (forall js env', extends env env' -> Forall2 (holds env') js (map (fun g => nats g) (tape_n_gram fx n)) -> Q js env') ->
  wp (BuildUniversal.tape_n_gram x n) env Q.
Proof.
  intros Hx K. unfold BuildUniversal.tape_n_gram. pose proof (extends_refl env) as X.
  step. eapply do_is_token; [exact Hx |]. intros s e1 E1 S. keep E1.
  step. apply (do_full _ _ _ _ _ _ _ _ _ 0). intros o e2 E2 O. keep E2.
  eapply do_last_tokens; [| exact Hx | exact S | exact O |]; [lia |]. intros js e3 E3 J. finish K.
Qed.

(* ---- the program ------------------------------------------------------------------------------------------------- *)
Lemma do_universal env Q x fx : is env x fx ->
  (forall j env', extends env env' -> is env' j (next_tokens_universal stU L R n fx) -> Q j env') ->
  wp (BuildUniversal.next_tokens_universal symbols states n x) env Q.
Proof.
  intros Hx K. unfold BuildUniversal.next_tokens_universal, BuildUniversal.next_tokens_on. pose proof (extends_refl env) as X.
  step. eapply do_is_token; [exact Hx |]. intros s e1 E1 S. keep E1.
  step. eapply do_cumsum; [exact S |]. intros l e2 E2 Hl. keep E2. change (cumsum (is_token fx 0)) with (line fx) in Hl.
  step. apply do_map with (ss := [nats (line fx)]) (f := nats (tok_map (line fx) (fun k => flag (0 <? k)))); [ready | |].
  { intros p Hp. cbn [ev operate nth map]. unfold tok_map. destruct (line fx p); reflexivity. }
  intros sn e3 E3 Sn. keep E3.
  step. eapply do_mask; [exact Hx | exact Sn |]. intros c e4 E4 Hc. keep E4.
  match type of Hc with Words.is _ _ _ ?g => change g with (cells fx) in Hc end.
  step. eapply do_look_up; [exact Hx | exact Hc |]. intros f e5 E5 F. keep E5.
  step. eapply (do_next_tape _ _ _ _ _ _ 2); [lia | exact Hc | exact F |]. intros t e6 E6 T. apply (rule_grow _ _ _ _ E6) in F. keep E6.
  step. eapply (do_next_tape _ _ _ _ _ _ 3); [lia | exact Hc | exact F |]. intros lt e7 E7 Lt. clear F. keep E7.
  step. eapply (do_fill wrap B st ns ny mv text M fits ltac:(lia) _ _ _ _ 2); [lia | exact Lt |]. intros kt e8 E8 Kt. keep E8.
  match type of Kt with Words.is _ _ _ ?g => change g with (universal_key_tape stU L R fx) in Kt end.
  step. eapply do_is_token; [exact Kt |]. intros ks e9 E9 Ks. keep E9.
  step. eapply do_cumsum; [exact Ks |]. intros kl e10 E10 Kl. keep E10.
  step. eapply do_tape_n_gram; [exact Kt |]. intros kg e11 E11 Kg. keep E11.
  step. eapply do_tape_n_gram; [exact Hc |]. intros qg e12 E12 Qg. keep E12.
  assert (Lk : length kg = n + 1) by (apply same_lengths in Kg; rewrite map_length, gram_length in Kg; auto).
  assert (Lq : length qg = n + 1) by (apply same_lengths in Qg; rewrite map_length, gram_length in Qg; auto).
  set (gk := tape_n_gram (universal_key_tape stU L R fx) n) in *. set (gq := tape_n_gram (cells fx) n) in *.
  assert (Lgk : length gk = n + 1) by apply gram_length. assert (Lgq : length gq = n + 1) by apply gram_length.
  step. eapply do_select_all with (fmore := combine gk gq); [exact Kl | exact Hl | | |].
  { rewrite (map_fst_combine kg qg) by lia. rewrite <- (map_fst_combine gk gq), map_map in Kg by lia. exact Kg. }
  { rewrite (map_snd_combine kg qg) by lia. rewrite <- (map_snd_combine gk gq), map_map in Qg by lia. exact Qg. }
  intros sl e13 E13 Sl. keep E13. rewrite (map_fst_combine gk gq), (map_snd_combine gk gq) in Sl by lia.
  eapply do_max; [exact Sl | exact T |]. intros j e14 E14 J. finish K.
Qed.

(* The output of the traced graph, at every place of every text, is the prediction of the program of Universal.v. *)
Theorem universal_graph_is_program : let out := output wrap B st ns ny mv (universal_graph symbols states n) (as_words text) in
  length out = long /\ forall p, p < long -> nth p out 0%Z = Z.of_nat (next_tokens_universal stU L R n (sequence_of text) p).
Proof.
  cbv zeta. unfold output, universal_graph, Build.graph_of.
  assert (I : is (run wrap B st ns ny mv [as_words text] [Input 0] []) 0 (sequence_of text)).
  { unfold Words.is, Words.holds, numbers. simpl. repeat split; [lia | apply map_length |].
    intros q Hq. unfold as_words, sequence_of. rewrite nth_mapped with (d' := 0) by auto. auto. }
  set (Q := fun j env => holds env j (nats (next_tokens_universal stU L R n (sequence_of text)))).
  assert (W : wp (BuildUniversal.next_tokens_universal symbols states n 0) (run wrap B st ns ny mv [as_words text] [Input 0] []) Q)
    by (eapply do_universal; [exact I |]; auto).
  assert (S : Datatypes.S (snd (BuildUniversal.next_tokens_universal symbols states n 0 1)) =
    1 + length (fst (BuildUniversal.next_tokens_universal symbols states n 0 1))).
  { assert (LN : last_node (BuildUniversal.next_tokens_universal symbols states n 0));
      [unfold BuildUniversal.next_tokens_universal, BuildUniversal.next_tokens_on; repeat (apply last_bind; intros); apply last_emit | apply LN]. }
  unfold Words.wp in W. change (length (run wrap B st ns ny mv [as_words text] [Input 0] [])) with 1 in W.
  destruct (BuildUniversal.next_tokens_universal symbols states n 0 1) as [g o]. simpl in S. injection S as ->.
  cbn [fst snd] in W. change (Build.inputs 1) with [Input 0]. cbv beta iota zeta. cbn [fst].
  replace (length ([Input 0] ++ g) - 1) with (length g) by (rewrite app_length; simpl; lia). rewrite run_app.
  destruct W as (_ & Wl & Wp). split; assumption.
Qed.
End Run.

(* ---- guards: a machine that runs, and what goes wrong without its hypotheses --------------------------------------- *)
(* One symbol (4), one state (5), L = 6, R = 7: to the right until eos, and back. *)
Module UniversalGuards.
Definition predictions (g : graph) (text : list nat) : list nat :=
  map Z.to_nat (output wrap64 0 (fun _ => false) (fun _ _ => 0) (fun _ _ => 0) (fun _ _ => false) g (map Z.of_nat text)).
Definition on_bos := [5; 1; 5; 1; 7].
Definition on_eos := [5; 2; 5; 2; 6].
Definition on_a := [5; 4; 5; 4; 7].
Definition prompt := [0; 1; 5; 4; 4; 2; 0].
Definition its_run := [1; 4; 5; 4; 2; 0; 1; 4; 4; 5; 2; 0].
(* after this table and the prompt, each token of the run is the prediction at the one before *)
Definition runs (g : graph) (table : list nat) : bool :=
  if list_eq_dec Nat.eq_dec (firstn 12 (skipn (length table + 6) (predictions g (table ++ prompt ++ its_run)))) its_run
  then true else false.
Example the_table : runs (universal_graph 1 1 1) (on_bos ++ on_eos ++ on_a) = true.
Proof. vm_compute. reflexivity. Qed.
Example in_any_order : runs (universal_graph 1 1 1) (on_a ++ on_bos ++ on_eos) = true.
Proof. vm_compute. reflexivity. Qed.
Example a_rule_is_missing : runs (universal_graph 1 1 1) (on_bos ++ on_eos) = false.
Proof. vm_compute. reflexivity. Qed.
Example two_rules_differ : runs (universal_graph 1 1 1) (on_bos ++ on_eos ++ on_a ++ [5; 4; 5; 5; 7]) = false.
Proof. vm_compute. reflexivity. Qed.
(* the program without its mask: the states of the table are heads *)
Definition unmasked : graph := fst (Build.graph_of 1 (BuildUniversal.next_tokens_on 1 1 1 0 (fun _ => Build.ret 0))).
Example the_table_is_masked : runs unmasked (on_bos ++ on_eos ++ on_a) = false.
Proof. vm_compute. reflexivity. Qed.
End UniversalGuards.
