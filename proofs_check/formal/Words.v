(* The traced graph, run on words of 64 bits, computes the program of `Program.v`, wherever its keys fit a word.

   A graph runs node by node; `wp b env Q` says that after the nodes added by b, Q holds of its result and of all values.
   For each function of the program: if its arguments hold the right sequences, so does its result. Sums and products
   go through `wrap`, and each is shown to stay within the largest number M that `wrap` leaves alone: the key is the
   largest. With `wrap` the identity every M will do, so the same proof serves whole numbers and 64-bit words. *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Step Grams Lookup Tokens Graph.

Definition as_words (text : list nat) : list Z := map Z.of_nat text.
Definition sequence_of (text : list nat) : sequence := fun p => nth p text 0.
Lemma text_is_below B text q : 1 <= B -> (forall z, In z text -> z < B) -> sequence_of text q < B.
Proof. intros HB Ht. unfold sequence_of. destruct (nth_in_or_default q text 0) as [I | ->]; auto. Qed.

Lemma reduce_max l : reduce Max 0 (map Z.of_nat l) = Z.of_nat (largest l).
Proof.
  destruct l as [| a l]; [reflexivity |]. simpl. unfold largest. simpl.
  assert (E : fold_right Z.max (Z.of_nat a) (map Z.of_nat l) = Z.max (Z.of_nat a) (Z.of_nat (fold_right Nat.max 0 l))).
  { induction l; simpl; [lia |]. rewrite IHl. lia. }
  rewrite E. lia.
Qed.
(* Most functions name the last node they add. *)
Definition last_node (b : Build.builder nat) : Prop := forall k, S (snd (b k)) = k + length (fst (b k)).
Lemma last_emit nd : last_node (Build.emit nd). Proof. intros k0. simpl. lia. Qed.
Lemma last_bind {A} (b : Build.builder A) f : (forall a, last_node (f a)) -> last_node (Build.bind b f).
Proof.
  intros Hf i. unfold Build.bind. destruct (b i) as [g a]. specialize (Hf a (i + length g)).
  destruct (f a (i + length g)) as [h c]. simpl in *. rewrite app_length. lia.
Qed.

Section Words.
Variable wrap : Z -> Z.
Variable B : nat.
Variable st : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Variable text : list nat.
Notation words := (as_words text).
Notation L := (length text).
Notation value_of := (value_of wrap B st ns ny mv [words]).
Notation run := (run wrap B st ns ny mv [words]).
Notation ev := (ev wrap B st ns ny mv).
Notation x := (sequence_of text).

Lemma long_text : long [words] = L.
Proof. unfold long, as_words. simpl. apply map_length. Qed.

(* ---- what a node holds ------------------------------------------------------------------------------------------- *)
Definition holds (env : list value) (i : nat) (s : nat -> Z) : Prop :=
  i < length env /\ length (numbers env i) = L /\ forall q, q < L -> nth q (numbers env i) 0%Z = s q.
Definition is (env : list value) (i : nat) (f : sequence) : Prop := holds env i (fun q => Z.of_nat (f q)).
Definition picks (env : list value) (i : nat) (f : nat -> list nat) : Prop :=
  i < length env /\ length (chosen env i) = L /\ forall q, q < L -> nth q (chosen env i) [] = f q.
Definition extends (env env' : list value) : Prop := exists more, env' = env ++ more.

Lemma extends_refl env : extends env env. Proof. exists []. rewrite app_nil_r. auto. Qed.
Lemma extends_trans a b c : extends a b -> extends b c -> extends a c.
Proof. intros [p ->] [q ->]. exists (p ++ q). rewrite app_assoc. auto. Qed.
Lemma extends_one env v : extends env (env ++ [v]). Proof. exists [v]. auto. Qed.
Lemma holds_grow env env' i s : extends env env' -> holds env i s -> holds env' i s.
Proof.
  intros [m ->] (Hi & Hl & Hq). unfold holds, numbers in *. rewrite app_length, nth_error_app1 by auto. split; [lia | auto].
Qed.
Lemma all_grow env env' ls ss : extends env env' -> Forall2 (holds env) ls ss -> Forall2 (holds env') ls ss.
Proof. intros E F. induction F; constructor; auto. eapply holds_grow; eassumption. Qed.
Lemma picks_grow env env' i s : extends env env' -> picks env i s -> picks env' i s.
Proof.
  intros [m ->] (Hi & Hl & Hq). unfold picks, chosen in *. rewrite app_length, nth_error_app1 by auto. split; [lia | auto].
Qed.
Lemma holds_new env l s : length l = L -> (forall q, q < L -> nth q l 0%Z = s q) -> holds (env ++ [Numbers l]) (length env) s.
Proof.
  intros Hl Hq. unfold holds, numbers. rewrite app_length, nth_error_app2, Nat.sub_diag by auto. simpl. split; [lia | auto].
Qed.
Lemma holds_ext env i s s' : (forall q, q < L -> s q = s' q) -> holds env i s -> holds env i s'.
Proof. intros E (Hi & Hl & Hq). repeat split; auto. intros q Hq'. rewrite Hq, E; auto. Qed.

Lemma nth_places {A} (f : nat -> A) d q : q < L -> nth q (map f (places [words])) d = f q.
Proof.
  intros Hq. unfold places. rewrite long_text. rewrite nth_indep with (d' := f 0) by (rewrite map_length, seq_length; auto).
  rewrite map_nth, seq_nth; auto.
Qed.
Lemma length_places {A} (f : nat -> A) : length (map f (places [words])) = L.
Proof. unfold places. rewrite map_length, seq_length. apply long_text. Qed.

(* ---- running what a function adds -------------------------------------------------------------------------------- *)
Definition wp {A} (b : Build.builder A) (env : list value) (Q : A -> list value -> Prop) : Prop :=
  Q (snd (b (length env))) (run (fst (b (length env))) env).
Lemma run_app g h : forall env, run (g ++ h) env = run h (run g env).
Proof. induction g; intros; simpl; auto. Qed.
Lemma run_length g : forall env, length (run g env) = length env + length g.
Proof. induction g; intros; simpl; [lia |]. rewrite IHg, app_length. simpl. lia. Qed.
Lemma wp_bind {A C} (b : Build.builder A) (f : A -> Build.builder C) env Q :
  wp b env (fun a env' => wp (f a) env' Q) -> wp (Build.bind b f) env Q.
Proof.
  unfold wp, Build.bind. destruct (b (length env)) as [g a]. simpl. rewrite run_length.
  destruct (f a (length env + length g)) as [h c]. simpl. rewrite run_app. auto.
Qed.
Lemma wp_ret {A} (a : A) env (Q : A -> list value -> Prop) : Q a env -> wp (Build.ret a) env Q.
Proof. auto. Qed.
Lemma wp_emit nd env (Q : nat -> list value -> Prop) : Q (length env) (env ++ [value_of env nd]) -> wp (Build.emit nd) env Q.
Proof. auto. Qed.

(* After a step: what was known stays known of the longer list of values. *)
Ltac grow E := repeat match goal with
  | H : holds ?env _ _ |- _ => match type of E with extends env _ => apply (holds_grow _ _ _ _ E) in H end
  | H : is ?env _ _ |- _ => match type of E with extends env _ => apply (holds_grow _ _ _ _ E) in H end
  | H : picks ?env _ _ |- _ => match type of E with extends env _ => apply (picks_grow _ _ _ _ E) in H end
  | H : Forall2 (holds ?env) _ _ |- _ => match type of E with extends env _ => apply (all_grow _ _ _ _ E) in H end
  | H : extends ?old ?env |- _ => match type of E with extends env _ => apply (fun h => extends_trans _ _ _ h E) in H end
  end.

Section Nodes.
Variable env : list value.
Variable Q : nat -> list value -> Prop.

Lemma do_full c : (forall j env', extends env env' -> is env' j (full c) -> Q j env') -> wp (Build.emit (Full (Z.of_nat c))) env Q.
Proof.
  intros K. apply wp_emit, K; [apply extends_one |]. apply holds_new; [apply length_places |].
  intros q Hq. rewrite nth_places by auto. auto.
Qed.
Lemma do_indices : (forall j env', extends env env' -> is env' j indices -> Q j env') -> wp (Build.emit Indices) env Q.
Proof.
  intros K. apply wp_emit, K; [apply extends_one |]. apply holds_new; [apply length_places |].
  intros q Hq. rewrite nth_places by auto. auto.
Qed.
Lemma at_holds ls ss q : Forall2 (holds env) ls ss -> q < L -> at_place q (map (numbers env) ls) = map (fun s => s q) ss.
Proof. intros F Hq. induction F as [| i s ls ss (_ & _ & H) F IH]; simpl; auto. rewrite IH, H by auto. auto. Qed.
Lemma do_map e ls ss (f : nat -> Z) : Forall2 (holds env) ls ss -> (forall q, q < L -> ev (map (fun s => s q) ss) e = f q) ->
  (forall j env', extends env env' -> holds env' j f -> Q j env') -> wp (Build.emit (Map e ls)) env Q.
Proof.
  intros F E K. apply wp_emit, K; [apply extends_one |]. apply holds_new; [apply length_places |].
  intros q Hq. rewrite nth_places by auto. rewrite (at_holds ls ss) by auto. auto.
Qed.
Lemma do_select e ks qs kss qss (pred : nat -> nat -> bool) : Forall2 (holds env) ks kss -> Forall2 (holds env) qs qss ->
  (forall q j, j <= q < L -> negb (ev (map (fun s => s j) kss ++ map (fun s => s q) qss) e =? 0)%Z = pred j q) ->
  (forall s env', extends env env' -> picks env' s (fun q => filter (fun j => pred j q) (seq 0 (S q))) -> Q s env') ->
  wp (Build.emit (Select ks qs e)) env Q.
Proof.
  intros FK FQ E K. apply wp_emit, K; [apply extends_one |].
  unfold picks, chosen. rewrite app_length, nth_error_app2, Nat.sub_diag by auto. split; [simpl; lia |].
  split; [apply length_places |]. intros q Hq. unfold Graph.value_of. cbv zeta. cbn [nth_error]. rewrite nth_places by auto.
  apply filter_ext_in. intros j Hj. apply in_seq in Hj.
  rewrite (at_holds ks kss), (at_holds qs qss) by (auto; lia). apply E. lia.
Qed.
Lemma nth_mapped {A C} (f : A -> C) l d d' q : q < length l -> nth q (map f l) d = f (nth q l d').
Proof. intros H. rewrite nth_indep with (d' := f d') by (rewrite map_length; auto). apply map_nth. Qed.
Lemma do_width s f (r : sequence) : picks env s f -> (forall q, q < L -> length (f q) = r q) ->
  (forall j env', extends env env' -> is env' j r -> Q j env') -> wp (Build.emit (Width s)) env Q.
Proof.
  intros (_ & Hl & Hq) E K. apply wp_emit, K; [apply extends_one |]. apply holds_new; [simpl; rewrite map_length; auto |].
  intros q H. rewrite nth_mapped with (d' := []), Hq, E by (auto; lia). auto.
Qed.
Lemma do_aggr r s v d f (fv : sequence) (g : nat -> Z) : picks env s f -> is env v fv ->
  (forall q j, q < L -> In j (f q) -> j < L) ->
  (forall q, q < L -> reduce r d (map (fun j => Z.of_nat (fv j)) (f q)) = g q) ->
  (forall j env', extends env env' -> holds env' j g -> Q j env') -> wp (Build.emit (Aggr r s v d)) env Q.
Proof.
  intros (_ & Hl & Hq) (_ & _ & Hv) In E K. apply wp_emit, K; [apply extends_one |].
  apply holds_new; [simpl; rewrite map_length; auto |].
  intros q H. rewrite nth_mapped with (d' := []), Hq by (auto; lia). rewrite <- E by auto. f_equal.
  apply map_ext_in. intros j Hj. apply Hv. eauto.
Qed.
End Nodes.

Ltac finish K := apply K; [eapply extends_trans; eassumption | assumption].
Ltac keep E := grow E; clear E.
Ltac step := apply wp_bind.
Ltac ready := repeat first [apply Forall2_cons; [eassumption |] | apply Forall2_nil].

Lemma eqb_of_nat a b : (Z.of_nat a =? Z.of_nat b)%Z = (a =? b).
Proof. destruct (Nat.eqb_spec a b) as [-> | N]; [apply Z.eqb_refl | apply Z.eqb_neq; lia]. Qed.
Lemma eqb_0 a : (Z.of_nat a =? 0)%Z = (a =? 0). Proof. exact (eqb_of_nat a 0). Qed.
Lemma eqb_2 a : (Z.of_nat a =? 2)%Z = (a =? 2). Proof. exact (eqb_of_nat a 2). Qed.
Lemma nonzero_truth b : negb (truth b =? 0)%Z = b. Proof. destruct b; reflexivity. Qed.
Lemma truth_0 b : (truth b =? 0)%Z = negb b. Proof. destruct b; reflexivity. Qed.
Lemma truth_flag b : truth b = Z.of_nat (flag b). Proof. destruct b; reflexivity. Qed.
Lemma odd_of_nat a : Z.odd (Z.of_nat a) = Nat.odd a.
Proof.
  induction a; [reflexivity |].
  rewrite Nat2Z.inj_succ, Z.odd_succ, Nat.odd_succ, <- Z.negb_odd, <- Nat.negb_odd, IHa. auto.
Qed.
Lemma testbit_of_nat n : forall a, Z.testbit (Z.of_nat a) (Z.of_nat n) = Nat.testbit a n.
Proof.
  induction n; intros a; [apply odd_of_nat |].
  rewrite Nat2Z.inj_succ, <- Z.div2_bits by lia. rewrite <- Nat.div2_bits, <- IHn. f_equal. symmetry. apply (Nat2Z.inj_div a 2).
Qed.
Lemma same_bits a b : (0 <= a)%Z -> (0 <= b)%Z -> (forall n, Z.testbit a (Z.of_nat n) = Z.testbit b (Z.of_nat n)) -> a = b.
Proof. intros Ha Hb E. apply Z.bits_inj'. intros n Hn. rewrite <- (Z2Nat.id n) by auto. apply E. Qed.
Lemma land_of_nat a b : Z.land (Z.of_nat a) (Z.of_nat b) = Z.of_nat (Nat.land a b).
Proof.
  apply same_bits; [apply Z.land_nonneg; lia | lia |].
  intros n. rewrite Z.land_spec, !testbit_of_nat, Nat.land_spec. auto.
Qed.
Lemma lor_of_nat a b : Z.lor (Z.of_nat a) (Z.of_nat b) = Z.of_nat (Nat.lor a b).
Proof.
  apply same_bits; [apply Z.lor_nonneg; lia | lia |].
  intros n. rewrite Z.lor_spec, !testbit_of_nat, Nat.lor_spec. auto.
Qed.

(* ---- the look-up: the largest value at the places whose key equals the query, part by part ---------------------- *)
Implicit Type Q : nat -> list value -> Prop.
Notation nats f := (fun q => Z.of_nat (f q)).
Lemma ev_all_equal (ks qs : list Z) : length ks = length qs -> forall i, i < length ks ->
  ev (ks ++ qs) (Build.all_equal (length ks) i) =
  truth (forallb (fun t => (nth t ks 0 =? nth t qs 0)%Z) (seq 0 (S i))).
Proof.
  intros Hl.
  assert (K : forall t, t < length ks -> nth t (ks ++ qs) 0%Z = nth t ks 0%Z) by (intros; apply app_nth1; auto).
  assert (Q : forall t, nth (length ks + t) (ks ++ qs) 0%Z = nth t qs 0%Z)
    by (intros; rewrite app_nth2 by lia; f_equal; lia).
  induction i; intros Hi.
  - simpl. rewrite K by auto. rewrite andb_true_r. specialize (Q 0). rewrite Nat.add_0_r in Q. rewrite Q. auto.
  - cbn [Build.all_equal Graph.ev operate]. rewrite IHi by lia. rewrite K, Q by auto.
    rewrite (seq_S (S i)), forallb_app. simpl. rewrite andb_true_r.
    destruct (forallb _ (seq 1 i)), (nth 0 ks 0 =? nth 0 qs 0)%Z, (nth (S i) ks 0 =? nth (S i) qs 0)%Z; reflexivity.
Qed.
Lemma same_key_all_equal (ks qs : list sequence) j q : ks <> [] -> length ks = length qs ->
  negb (ev (map (fun s => s j) (map (fun f => nats f) ks) ++ map (fun s => s q) (map (fun f => nats f) qs))
    (Build.all_equal (length ks) (length ks - 1)) =? 0)%Z = same_key ks qs j q.
Proof.
  intros Hn Hl. assert (0 < length ks) by (destruct ks; simpl; [tauto | lia]).
  match goal with |- context [ev (?a ++ ?b) _] => remember a as kz eqn:Ek; remember b as qz eqn:Eq end.
  assert (Lk : length kz = length ks) by (rewrite Ek, !map_length; auto).
  assert (Lq : length qz = length qs) by (rewrite Eq, !map_length; auto).
  assert (Nk : forall t, nth t kz 0%Z = Z.of_nat (nth t (map (fun s => s j) ks) 0)).
  { intros t. rewrite Ek, map_map. rewrite <- (map_nth Z.of_nat), map_map. auto. }
  assert (Nq : forall t, nth t qz 0%Z = Z.of_nat (nth t (map (fun s => s q) qs) 0)).
  { intros t. rewrite Eq, map_map. rewrite <- (map_nth Z.of_nat), map_map. auto. }
  rewrite <- Lk, ev_all_equal by lia. rewrite nonzero_truth. clear Ek Eq.
  apply eq_true_iff_eq. rewrite same_key_spec, forallb_forall by auto. split.
  - intros E. apply nth_ext with (d := 0) (d' := 0); rewrite !map_length; auto. intros t Ht.
    assert (t < length kz) by (rewrite Lk; exact Ht). specialize (E t ltac:(apply in_seq; lia)). apply Z.eqb_eq in E. rewrite Nk, Nq in E. apply Nat2Z.inj, E.
  - intros E t _. rewrite Nk, Nq, E. apply Z.eqb_refl.
Qed.
Lemma map_fst_combine {A C} (a : list A) (c : list C) : length a = length c -> map fst (combine a c) = a.
Proof. revert c. induction a; destruct c; simpl; intros E; try discriminate; auto. f_equal. auto. Qed.
Lemma map_snd_combine {A C} (a : list A) (c : list C) : length a = length c -> map snd (combine a c) = c.
Proof. revert c. induction a; destruct c; simpl; intros E; try discriminate; auto. f_equal. auto. Qed.
Lemma same_lengths {A C} (P : A -> C -> Prop) a c : Forall2 P a c -> length a = length c.
Proof. intros F. induction F; simpl; auto. Qed.
Lemma do_join Q : forall more env ks qs s (fks fqs : list sequence) (fmore : list (sequence * sequence)), fks <> [] -> length fks = length fqs ->
  Forall2 (holds env) ks (map (fun f => nats f) fks) -> Forall2 (holds env) qs (map (fun f => nats f) fqs) ->
  Forall2 (holds env) (map fst more) (map (fun f => nats (fst f)) fmore) ->
  Forall2 (holds env) (map snd more) (map (fun f => nats (snd f)) fmore) ->
  picks env s (matching fks fqs) ->
  (forall s env', extends env env' -> picks env' s (matching (fks ++ map fst fmore) (fqs ++ map snd fmore)) -> Q s env') ->
  wp (Build.join ks qs more s) env Q.
Proof.
  induction more as [| [k q] more IH]; intros env ks qs s fks fqs fmore Hn Hl Fk Fq Mk Mq P K.
  - destruct fmore; [| inversion Mk]. simpl in K. rewrite !app_nil_r in K. apply wp_ret, K; auto using extends_refl.
  - destruct fmore as [| [fk fq] fmore]; [inversion Mk |]. simpl in Mk, Mq.
    inversion Mk as [| ? ? ? ? Hk Mk']; subst. inversion Mq as [| ? ? ? ? Hq Mq']; subst. clear Mk Mq.
    pose proof (extends_refl env) as X. cbn [Build.join].
    step. apply do_select with (kss := [nats fk]) (qss := [nats fq]) (pred := fun j q => fk j =? fq q); [ready | ready | |].
    { intros a b Hab. simpl. rewrite nonzero_truth. apply eqb_of_nat. }
    intros one e1 E1 _. clear P. keep E1.
    assert (Lk : length ks = length fks) by (apply same_lengths in Fk; rewrite map_length in Fk; auto).
    assert (Fk' : Forall2 (holds e1) (ks ++ [k]) (map (fun f => nats f) (fks ++ [fk])))
      by (rewrite map_app; apply Forall2_app; auto; simpl; ready).
    assert (Fq' : Forall2 (holds e1) (qs ++ [q]) (map (fun f => nats f) (fqs ++ [fq])))
      by (rewrite map_app; apply Forall2_app; auto; simpl; ready).
    step. eapply do_select with (pred := same_key (fks ++ [fk]) (fqs ++ [fq])); [exact Fk' | exact Fq' | |].
    { intros a b Hab. replace (length (ks ++ [k])) with (length (fks ++ [fk])) by (rewrite !app_length; simpl; lia).
      apply same_key_all_equal; [destruct fks; discriminate | rewrite !app_length; simpl; lia]. }
    intros s' e2 E2 S'. keep E2.
    eapply IH with (fks := fks ++ [fk]) (fqs := fqs ++ [fq]) (fmore := fmore); eauto.
    + destruct fks; discriminate.
    + rewrite !app_length. simpl. lia.
    + intros s2 e3 E3 P. simpl in K. rewrite <- !app_assoc in P. apply K; [eapply extends_trans; eassumption | exact P].
Qed.
Lemma do_select_all env Q k q more (fk fq : sequence) (fmore : list (sequence * sequence)) : is env k fk -> is env q fq ->
  Forall2 (holds env) (map fst more) (map (fun f => nats (fst f)) fmore) ->
  Forall2 (holds env) (map snd more) (map (fun f => nats (snd f)) fmore) ->
  (forall s env', extends env env' -> picks env' s (matching (fk :: map fst fmore) (fq :: map snd fmore)) -> Q s env') ->
  wp (Build.select_all k q more) env Q.
Proof.
  intros Hk Hq Mk Mq K. unfold Build.select_all. pose proof (extends_refl env) as X.
  step. apply do_select with (kss := [nats fk]) (qss := [nats fq]) (pred := same_key [fk] [fq]); [ready | ready | |].
  { intros a b Hab. simpl. rewrite nonzero_truth. unfold same_key. simpl. rewrite andb_true_r. apply eqb_of_nat. }
  intros s e1 E1 S. keep E1.
  eapply do_join with (fks := [fk]) (fqs := [fq]) (fmore := fmore); auto; try discriminate; try (simpl; ready; fail); eauto.
  intros s2 e2 E2 P. finish K.
Qed.
Lemma do_max env Q s v ks qs fv : picks env s (matching ks qs) -> is env v fv ->
  (forall j env', extends env env' -> is env' j (kqv_max ks qs fv 0) -> Q j env') -> wp (Build.emit (Aggr Max s v 0)) env Q.
Proof.
  intros S V K. eapply do_aggr with (g := nats (kqv_max ks qs fv 0)); [exact S | exact V | | | exact K].
  - intros q j Hq Hj. apply filter_In in Hj as [Hj _]. apply in_seq in Hj. lia.
  - intros q Hq. rewrite kqv_max_0, <- map_map with (g := Z.of_nat). apply reduce_max.
Qed.

(* ---- the library ------------------------------------------------------------------------------------------------- *)
Variable M : nat.
Hypothesis fits : forall z, (0 <= z <= Z.of_nat M)%Z -> wrap z = z.
Hypothesis room : L + 4 <= M.

Lemma do_shift env Q i f n : n <= 4 -> is env i f ->
  (forall j env', extends env env' -> is env' j (shift_right f n) -> Q j env') -> wp (Build.shift_right i n) env Q.
Proof.
  intros Hn F K. unfold Build.shift_right. pose proof (extends_refl env) as X.
  step. apply do_indices. intros a e1 E1 A. grow E1. clear E1.
  step. apply do_map with (ss := [fun q => Z.of_nat (indices q)]) (f := fun q => Z.of_nat (q + n)); [ready | |].
  { intros q Hq. unfold indices. destruct n; simpl; [f_equal; lia |]. rewrite fits by lia. lia. }
  intros k e2 E2 Kk. grow E2. clear E2.
  step. apply do_indices. intros b e3 E3 Bb. grow E3. clear E3.
  step. apply do_select with (kss := [fun q => Z.of_nat (q + n)]) (qss := [fun q => Z.of_nat (indices q)])
    (pred := fun j q => j + n =? q); [ready | ready | |].
  { intros q j Hj. simpl. rewrite nonzero_truth. apply eqb_of_nat. }
  intros s e4 E4 S. grow E4. clear E4.
  eapply do_aggr with (g := fun q => Z.of_nat (shift_right f n q)); [eassumption | eassumption | | |].
  - intros q j Hq Hj. apply filter_In in Hj as [Hj _]. apply in_seq in Hj. lia.
  - intros q Hq. rewrite shift_spec, filter_shift. unfold shift_right.
    destruct (Nat.leb_spec (0 + n) q), (Nat.ltb_spec q (0 + Datatypes.S q + n)), (Nat.ltb_spec q n); try lia; auto.
    simpl. rewrite Z.add_0_r, Z.quot_1_r. auto.
  - intros j e5 E5 J. apply K; auto. eapply extends_trans; eauto.
Qed.

Lemma do_where env Q c a b fc fa fb : is env c fc -> is env a fa -> is env b fb ->
  (forall j env', extends env env' -> is env' j (where_ fc fa fb) -> Q j env') -> wp (Build.where_ c a b) env Q.
Proof.
  intros C A Bb K. unfold Build.where_. pose proof (extends_refl env) as X.
  step. apply do_map with (ss := [fun q => Z.of_nat (fa q); fun q => Z.of_nat (fc q)])
    (f := fun q => Z.of_nat (seq_map fa fc (fun x m => if m =? 0 then 0 else x) q)); [ready | |].
  { intros q Hq. simpl. rewrite truth_0, negb_involutive, eqb_0. unfold seq_map. destruct (fc q =? 0); auto. }
  intros i e1 E1 I. grow E1. clear E1.
  step. apply do_map with (ss := [fun q => Z.of_nat (fb q); fun q => Z.of_nat (fc q)])
    (f := fun q => Z.of_nat (seq_map fb fc (fun y m => if m =? 0 then y else 0) q)); [ready | |].
  { intros q Hq. simpl. rewrite truth_0, negb_involutive, eqb_0. unfold seq_map. destruct (fc q =? 0); auto. }
  intros j e2 E2 J. grow E2. clear E2.
  apply do_map with (ss := [fun q => Z.of_nat (seq_map fa fc (fun x m => if m =? 0 then 0 else x) q);
    fun q => Z.of_nat (seq_map fb fc (fun y m => if m =? 0 then y else 0) q)]) (f := fun q => Z.of_nat (where_ fc fa fb q));
    [ready | |].
  { intros q Hq. simpl. rewrite truth_0, eqb_0. unfold where_.
    set (u := seq_map fa fc _). set (v := seq_map fb fc _). unfold seq_map. destruct (v q =? 0); auto. }
  intros o e3 E3 O. apply K; auto. eapply extends_trans; eauto.
Qed.

Lemma do_band env Q a b fa fb : is env a fa -> is env b fb ->
  (forall j env', extends env env' -> is env' j (band fa fb) -> Q j env') -> wp (Build.band a b) env Q.
Proof.
  intros A Bb K. apply do_map with (ss := [fun q => Z.of_nat (fa q); fun q => Z.of_nat (fb q)])
    (f := fun q => Z.of_nat (band fa fb q)); [ready | | exact K]. intros q Hq. apply land_of_nat.
Qed.
Lemma do_bor env Q a b fa fb : is env a fa -> is env b fb ->
  (forall j env', extends env env' -> is env' j (bor fa fb) -> Q j env') -> wp (Build.bor a b) env Q.
Proof.
  intros A Bb K. apply do_map with (ss := [fun q => Z.of_nat (fa q); fun q => Z.of_nat (fb q)])
    (f := fun q => Z.of_nat (bor fa fb q)); [ready | | exact K]. intros q Hq. apply lor_of_nat.
Qed.
(* `x & ~y` is two nodes, the first of which holds negative numbers. *)
Lemma do_bandnot {C} env (Q : C -> list value -> Prop) a b fa fb (f : nat -> Build.builder C) : is env a fa -> is env b fb ->
  (forall j env', extends env env' -> is env' j (bandnot fa fb) -> wp (f j) env' Q) ->
  wp (Build.bind (Build.invert b) (fun i => Build.bind (Build.band a i) f)) env Q.
Proof.
  intros A Bb K. pose proof (extends_refl env) as X.
  step. apply do_map with (ss := [fun q => Z.of_nat (fb q)]) (f := fun q => Z.lnot (Z.of_nat (fb q))); [ready | auto |].
  intros i e1 E1 I. keep E1.
  step. apply do_map with (ss := [fun q => Z.of_nat (fa q); fun q => Z.lnot (Z.of_nat (fb q))])
    (f := fun q => Z.of_nat (bandnot fa fb q)); [ready | |].
  { intros q Hq. simpl. unfold bandnot, seq_map. rewrite Z2Nat.id; auto. apply Z.land_nonneg. lia. }
  intros j e2 E2 J. finish K.
Qed.

Lemma do_equal_to env Q a fa (c : nat) : is env a fa ->
  (forall j env', extends env env' -> is env' j (tok_map fa (fun v => if v =? c then 1 else 0)) -> Q j env') ->
  wp (Build.emit (Map (Bin Eq (Arg 0) (Const (Z.of_nat c))) [a])) env Q.
Proof.
  intros A K. apply do_map with (ss := [fun q => Z.of_nat (fa q)])
    (f := fun q => Z.of_nat (tok_map fa (fun v => if v =? c then 1 else 0) q)); [ready | | exact K].
  intros q Hq. simpl. rewrite eqb_of_nat. unfold tok_map. destruct (fa q =? c); auto.
Qed.

Lemma do_where3 env Q c a b d fc fa fb fd : is env c fc -> is env a fa -> is env b fb -> is env d fd ->
  (forall j env', extends env env' -> is env' j (where3 fc fa fb fd) -> Q j env') -> wp (Build.where3 c a b d) env Q.
Proof.
  intros C A Bb D K. unfold Build.where3. pose proof (extends_refl env) as X.
  step. eapply (do_equal_to _ _ _ _ 0); [eassumption |]. intros c0 e1 E1 C0. keep E1.
  step. eapply do_where; [exact C0 | exact A | exact Bb |]. intros o e2 E2 O. keep E2.
  step. eapply (do_equal_to _ _ _ _ 2); [eassumption |]. intros c2 e3 E3 C2. keep E3.
  eapply do_where; [exact C2 | exact D | exact O |]. intros r e4 E4 R. finish K.
Qed.

Lemma do_fill env Q a fa n v : n <= 4 -> is env a fa ->
  (forall j env', extends env env' -> is env' j (prefix_fill fa n v) -> Q j env') -> wp (Build.prefix_fill a n v) env Q.
Proof.
  intros Hn A K. unfold Build.prefix_fill. pose proof (extends_refl env) as X.
  step. apply (do_full _ _ 1). intros one e1 E1 O. keep E1.
  step. eapply do_shift; [exact Hn | exact O |]. intros nf e2 E2 N. keep E2.
  step. apply do_full. intros fl e3 E3 F. keep E3.
  eapply do_where; [exact N | exact A | exact F |]. intros r e4 E4 R. finish K.
Qed.

Lemma do_cumsum env Q a fa : is env a fa ->
  (forall j env', extends env env' -> is env' j (cumsum fa) -> Q j env') -> wp (Build.cumsum a) env Q.
Proof.
  intros A K. unfold Build.cumsum. pose proof (extends_refl env) as X.
  step. apply do_select with (kss := [fun q => Z.of_nat (fa q)]) (qss := [fun q => Z.of_nat (fa q)])
    (pred := fun j _ => negb (fa j =? 0)); [ready | ready | |].
  { intros q j Hj. simpl. rewrite nonzero_truth, eqb_0. auto. }
  intros s e1 E1 S. keep E1. eapply do_width with (r := cumsum fa); [exact S | | intros j e2 E2 J; finish K]. auto.
Qed.

(* ---- the next tape ----------------------------------------------------------------------------------------------- *)
Lemma do_is_state env Q a fa : is env a fa -> (forall j env', extends env env' -> is env' j (is_state st fa) -> Q j env') ->
  wp (Build.emit (Map (IsState (Arg 0)) [a])) env Q.
Proof.
  intros A K. apply do_map with (ss := [fun q => Z.of_nat (fa q)]) (f := fun q => Z.of_nat (is_state st fa q));
    [ready | | exact K]. intros q Hq. simpl. rewrite Nat2Z.id. apply truth_flag.
Qed.
Lemma do_look env Q t a b fa fb (f : sequence) : is env a fa -> is env b fb ->
  (forall q, q < L -> look ns ny mv t (Z.of_nat (fa q)) (Z.of_nat (fb q)) = Z.of_nat (f q)) ->
  (forall j env', extends env env' -> is env' j f -> Q j env') -> wp (Build.emit (Map (Look t (Arg 0) (Arg 1)) [a; b])) env Q.
Proof.
  intros A Bb E K. apply do_map with (ss := [fun q => Z.of_nat (fa q); fun q => Z.of_nat (fb q)])
    (f := fun q => Z.of_nat (f q)); [ready | exact E | exact K].
Qed.

Lemma do_get_next env (Q : nat * nat * nat -> list value -> Prop) a l r fa fl fr : is env a fa -> is env l fl -> is env r fr ->
  (forall h n m env', extends env env' -> is env' h (is_state st fa) -> is env' n (gn_next st ns ny fa fl fr) ->
     is env' m (gn_move st mv fa fl) -> Q (h, n, m) env') -> wp (Build.get_next a l r) env Q.
Proof.
  intros A Ll R K. unfold Build.get_next. pose proof (extends_refl env) as X.
  step. eapply do_is_state; [exact A |]. intros h e1 E1 Hh. keep E1.
  step. eapply do_is_state; [exact R |]. intros hr e2 E2 Hr. keep E2.
  step. apply do_look with (fa := fa) (fb := fl) (f := seq_map fa fl ns); [exact A | exact Ll | |].
  { intros q _. unfold look. rewrite !Nat2Z.id. auto. }
  intros qs e3 E3 Qs. keep E3.
  step. eapply do_where; [exact Hh | exact Qs | exact A |]. intros x1 e4 E4 X1. keep E4.
  step. apply do_look with (fa := fr) (fb := fa) (f := seq_map fr fa ny); [exact R | exact A | |].
  { intros q _. unfold look. rewrite !Nat2Z.id. auto. }
  intros sy e5 E5 Sy. keep E5.
  step. eapply do_where; [exact Hr | exact Sy | exact X1 |]. intros x2 e6 E6 X2. keep E6.
  step. apply do_look with (fa := fa) (fb := fl) (f := seq_map fa fl (fun q a => flag (mv q a))); [exact A | exact Ll | |].
  { intros q _. unfold look. rewrite !Nat2Z.id. apply truth_flag. }
  intros m e7 E7 Mm. keep E7.
  step. eapply do_band; [exact Mm | exact Hh |]. intros mr e8 E8 Mr. keep E8.
  apply wp_ret, K; assumption.
Qed.

Lemma do_move_head env Q h n m rh rn rm fh fn fm frh frn frm :
  is env h fh -> is env n fn -> is env m fm -> is env rh frh -> is env rn frn -> is env rm frm ->
  (forall j env', extends env env' -> is env' j (move_head fh fn fm frh frn frm) -> Q j env') ->
  wp (Build.move_head (h, n, m) (rh, rn, rm)) env Q.
Proof.
  intros Hh Hn Hm Rh Rn Rm K. unfold Build.move_head. pose proof (extends_refl env) as X.
  step. eapply (do_shift _ _ _ _ 1); [lia | exact Hh |]. intros lh e1 E1 Lh. keep E1.
  step. eapply (do_shift _ _ _ _ 1); [lia | exact Hn |]. intros ln e2 E2 Ln. keep E2.
  step. eapply (do_shift _ _ _ _ 1); [lia | exact Hm |]. intros lm e3 E3 Lm. keep E3.
  step. eapply do_band; [exact Lh | exact Lm |]. intros a e4 E4 A. keep E4.
  eapply do_bandnot; [exact Hh | exact Hm |]. intros b e5 E5 Bb. keep E5.
  step. eapply do_bor; [exact A | exact Bb |]. intros fl e6 E6 Fl. keep E6.
  eapply do_bandnot; [exact Rh | exact Rm |]. intros c e7 E7 C. keep E7.
  step. eapply do_band; [exact Hh | exact Hm |]. intros d e8 E8 D. keep E8.
  step. eapply do_bor; [exact C | exact D |]. intros fr e9 E9 Fr. keep E9.
  step. unfold Build.select_move_token.
  step. apply (do_full _ _ 0). intros z e10 E10 Z0. keep E10.
  step. apply (do_full _ _ 1). intros o e11 E11 O1. keep E11.
  step. eapply do_where; [exact Fl | exact Z0 | exact O1 |]. intros u e12 E12 U. keep E12.
  step. apply (do_full _ _ 2). intros t e13 E13 T2. keep E13.
  eapply do_where; [exact Fr | exact T2 | exact U |]. intros v e14 E14 V. keep E14.
  eapply do_where3; [exact V | exact Ln | exact Hn | exact Rn |]. intros r e15 E15 R. finish K.
Qed.

Lemma do_next_tape env Q a fa s : s <= 3 -> is env a fa ->
  (forall j env', extends env env' -> is env' j (next_tape st ns ny mv fa s) -> Q j env') -> wp (Build.next_tape a s) env Q.
Proof.
  intros Hs A K. unfold Build.next_tape. pose proof (extends_refl env) as X.
  step. eapply do_shift; [| exact A |]; [lia |]. intros x0 e1 E1 X0. keep E1.
  step. eapply do_shift; [| exact A |]; [lia |]. intros xl e2 E2 Xl. keep E2.
  step. eapply do_shift; [| exact A |]; [lia |]. intros xr e3 E3 Xr. keep E3.
  step. eapply do_shift; [| exact A |]; [lia |]. intros xrr e4 E4 Xrr. keep E4.
  step. eapply do_get_next; [exact X0 | exact Xl | exact Xr |]. intros h n m e5 E5 Hh Hn Hm. keep E5.
  step. eapply do_get_next; [exact Xr | exact X0 | exact Xrr |]. intros rh rn rm e6 E6 Rh Rn Rm. keep E6.
  eapply do_move_head; [exact Hh | exact Hn | exact Hm | exact Rh | exact Rn | exact Rm |].
  intros r e7 E7 R. finish K.
Qed.

(* ---- keys -------------------------------------------------------------------------------------------------------- *)
Variable n : nat.
Hypothesis B1 : 1 <= B.

Lemma power_le a b : a <= b -> B ^ a <= B ^ b.
Proof. intros. apply Nat.pow_le_mono_r; lia. Qed.

(* A token further back, and whether a separator lies between: what both kinds of gram are made of. *)
Lemma do_token {C} env (Q : C -> list value -> Prop) b s fb fs (f : nat -> nat -> Build.builder C) : B <= M + 1 ->
  is env b fb -> is env s fs -> (forall q, fb q <= 1) -> (forall q, fs q < B) ->
  (let fb' := bor (is_sep fs) fb in let ft := seq_map fs fb' (fun a b => a * (1 - b)) in
   (forall q, fb' q <= 1) -> (forall q, ft q < B) ->
   forall b' t env', extends env env' -> is env' b' fb' -> is env' t ft -> wp (f b' t) env' Q) ->
  wp (Build.bind (Build.is_sep s) (fun new => Build.bind (Build.bor new b) (fun b' => Build.bind
    (Build.emit (Map (Bin Mul (Arg 0) (Bin Sub (Const 1) (Arg 1))) [s; b'])) (fun t => f b' t)))) env Q.
Proof.
  intros MB Bb S Bf Bs K. cbv zeta in K. pose proof (extends_refl env) as X.
  step. eapply (do_equal_to _ _ _ _ 0); [exact S |]. intros z e1 E1 Z. keep E1.
  step. eapply do_bor; [exact Z | exact Bb |]. intros b' e2 E2 B'. keep E2.
  change (tok_map fs (fun v => if v =? 0 then 1 else 0)) with (is_sep fs) in B'. set (fb' := bor (is_sep fs) fb) in *.
  assert (Bf' : forall q, fb' q <= 1).
  { intros q. unfold fb', bor, seq_map, is_sep, tok_map. specialize (Bf q).
    assert (fb q = 0 \/ fb q = 1) as [-> | ->] by lia; destruct (fs q =? 0); vm_compute; auto. }
  step. apply do_map with (ss := [nats fs; nats fb']) (f := nats (seq_map fs fb' (fun a b => a * (1 - b)))); [ready | |].
  { intros q Hq. cbn [Graph.ev operate nth map]. unfold seq_map. specialize (Bf' q). specialize (Bs q).
    assert (wrap (1 - Z.of_nat (fb' q)) = Z.of_nat (1 - fb' q))%Z as -> by (rewrite fits; lia).
    rewrite <- Nat2Z.inj_mul. apply fits. assert (fb' q = 0 \/ fb' q = 1) as [-> | ->] by lia; lia. }
  intros t e3 E3 T. keep E3. apply K; auto.
  intros q. unfold seq_map. specialize (Bs q). specialize (Bf' q). assert (fb' q = 0 \/ fb' q = 1) as [-> | ->] by lia; lia.
Qed.

Section Hash.
Hypothesis gram_fits : B ^ (n + 1) <= M + 1.
Lemma do_hash_loop Q m : forall i env o b s fo fb fs, i + m = n -> is env o fo -> is env b fb -> is env s fs ->
  (forall q, fo q < B ^ (i + 1)) -> (forall q, fb q <= 1) -> (forall q, fs q < B) ->
  (forall j env', extends env env' -> is env' j (hash_loop B m fo fb fs) -> Q j env') -> wp (Build.hash_loop m o b s) env Q.
Proof.
  induction m; intros i env o b s fo fb fs Hi O Bb S Bo Bf Bs K; [apply wp_ret, K; auto using extends_refl |].
  simpl Build.hash_loop. pose proof (extends_refl env) as X.
  assert (MB : B <= M + 1) by (pose proof (power_le 1 (n + 1) ltac:(lia)); simpl in *; lia).
  eapply do_token; [exact MB | exact Bb | exact S | exact Bf | exact Bs |].
  intros fb' fta Bf' Bt b' ta e1 E1 B' Ta. keep E1.
  assert (Bn : forall q, fta q + B * fo q < B ^ (Datatypes.S i + 1)).
  { intros q. specialize (Bt q). specialize (Bo q). replace (Datatypes.S i + 1) with (Datatypes.S (i + 1)) by lia. simpl. nia. }
  assert (Pw : B ^ (Datatypes.S i + 1) <= M + 1) by (pose proof (power_le (Datatypes.S i + 1) (n + 1) ltac:(lia)); lia).
  step. apply do_map with (ss := [nats fo; nats fta]) (f := nats (seq_map fo fta (fun a b => b + B * a))); [ready | |].
  { intros q Hq. cbn [Graph.ev operate nth map]. unfold seq_map. specialize (Bn q).
    change (Z.of_nat 1) with 1%Z. rewrite Z.pow_1_r.
    assert (wrap (Z.of_nat B * Z.of_nat (fo q)) = Z.of_nat (B * fo q))%Z as -> by (rewrite <- Nat2Z.inj_mul; apply fits; lia).
    rewrite <- Nat2Z.inj_add. apply fits. lia. }
  intros o' e4 E4 O'. keep E4.
  step. eapply (do_shift _ _ _ _ 1); [lia | exact S |]. intros s' e5 E5 S'. keep E5.
  eapply (IHm (Datatypes.S i)); [lia | exact O' | exact B' | exact S' | exact Bn | exact Bf' | |].
  - intros q. rewrite shift_spec. destruct (q <? 1); auto.
  - intros j e6 E6 J. finish K.
Qed.

Lemma do_hash env Q a fa : is env a fa -> (forall q, fa q < B) ->
  (forall j env', extends env env' -> is env' j (hash_n_gram B fa n) -> Q j env') -> wp (Build.hash_n_gram a n) env Q.
Proof.
  intros A Bf K. unfold Build.hash_n_gram. pose proof (extends_refl env) as X.
  step. eapply (do_equal_to _ _ _ _ 0); [exact A |]. intros b e1 E1 Bb. keep E1.
  step. eapply (do_shift _ _ _ _ 1); [lia | exact A |]. intros s e2 E2 S. keep E2.
  apply (do_hash_loop Q n 0 _ _ _ _ fa (is_sep fa) (shift_right fa 1)); auto.
  - intros q. simpl. rewrite Nat.mul_1_r. auto.
  - intros q. unfold is_sep, tok_map. destruct (fa q =? 0); lia.
  - intros q. rewrite shift_spec. destruct (q <? 1); auto.
  - intros j e3 E3 J. finish K.
Qed.
End Hash.

Section Tokens.
Hypothesis token_fits : B <= M + 1.
Lemma do_before m : forall env (Q : list nat -> list value -> Prop) b s fb fs, is env b fb -> is env s fs ->
  (forall q, fb q <= 1) -> (forall q, fs q < B) ->
  (forall js env', extends env env' -> Forall2 (holds env') js (map (fun f => nats f) (tokens_before m fb fs)) -> Q js env') ->
  wp (Build.tokens_before m b s) env Q.
Proof.
  induction m; intros env Q b s fb fs Bb S Bf Bs K; [apply wp_ret, K; [apply extends_refl | constructor] |].
  simpl Build.tokens_before. pose proof (extends_refl env) as X.
  eapply do_token; [exact token_fits | exact Bb | exact S | exact Bf | exact Bs |].
  intros fb' ft Bf' Bt b' t e1 E1 B' T. keep E1.
  step. eapply (do_shift _ _ _ _ 1); [lia | exact S |]. intros s' e2 E2 S'. keep E2.
  step. eapply IHm; [exact B' | exact S' | exact Bf' | |].
  - intros q. rewrite shift_spec. destruct (q <? 1); auto.
  - intros js e3 E3 J. keep E3. apply wp_ret, K; [assumption |]. simpl. constructor; assumption.
Qed.
Lemma do_n_gram env (Q : list nat -> list value -> Prop) a fa : is env a fa -> (forall q, fa q < B) ->
  (forall js env', extends env env' -> Forall2 (holds env') js (map (fun f => nats f) (n_gram fa n)) -> Q js env') ->
  wp (Build.n_gram a n) env Q.
Proof.
  intros A Bf K. unfold Build.n_gram. pose proof (extends_refl env) as X.
  step. eapply (do_equal_to _ _ _ _ 0); [exact A |]. intros b e1 E1 Bb. keep E1.
  step. eapply (do_shift _ _ _ _ 1); [lia | exact A |]. intros s e2 E2 S. keep E2.
  step. apply (do_before n _ _ _ _ (is_sep fa) (shift_right fa 1)); auto.
  - intros q. unfold is_sep, tok_map. destruct (fa q =? 0); lia.
  - intros q. rewrite shift_spec. destruct (q <? 1); auto.
  - intros js e3 E3 J. keep E3. apply wp_ret, K; [assumption |]. simpl. constructor; assumption.
Qed.
End Tokens.

(* The largest number that the program computes on a text of that length: what must fit a word. A tuple packs nothing; what
   is left are the tokens, and positions plus a shift. *)
Definition largest_key (k : packing) (n length : nat) : nat :=
  match k with
  | Paper => length + B ^ n * (B ^ (n + 1) - 1)
  | Unbounded => B ^ (n + 1) - 1 + B ^ (n + 1) * length
  | Tuple => Nat.max (length + 4) B
  end.
(* The parts of a key, as the graph has them. *)
Definition key_parts (k : packing) (f : sequence) (n : nat) : list sequence :=
  match k with Tuple => token_key f n | _ => hash_n_gram_iter B k f n end.
Variable k : packing.
Hypothesis key_fits : largest_key k n L <= M.
Hypothesis gram_fits : k <> Tuple -> B ^ (n + 1) <= M + 1.

Lemma do_packed env (Q : list nat -> list value -> Prop) a g fa : k <> Tuple -> is env a (cumsum (is_sep fa)) ->
  is env g (hash_n_gram B fa n) -> (forall q, fa q < B) ->
  (forall js env', extends env env' -> Forall2 (holds env') js (map (fun f => nats f) (hash_n_gram_iter B k fa n)) -> Q js env') ->
  wp (Build.packed k n a g) env Q.
Proof.
  intros Hk C G Bf K. unfold Build.packed. pose proof (extends_refl env) as X.
  assert (Bc : forall q, q < L -> cumsum (is_sep fa) q <= L) by (intros q Hq; pose proof (count_le fa q); unfold count in *; lia).
  assert (Bg : forall q, hash_n_gram B fa n q <= B ^ (n + 1) - 1).
  { intros q. rewrite hash_spec. pose proof (H_below B fa q n Bf). lia. }
  unfold hash_n_gram_iter, largest_key in *. destruct k; [| | contradiction].
  - step. apply do_map with (ss := [nats (cumsum (is_sep fa)); nats (hash_n_gram B fa n)])
      (f := nats (seq_map (cumsum (is_sep fa)) (hash_n_gram B fa n) (fun a b => a + B ^ n * b))); [ready | |].
    { intros q Hq. cbn [Graph.ev operate nth map]. unfold seq_map. specialize (Bc q Hq). specialize (Bg q).
      assert (B ^ n * hash_n_gram B fa n q <= B ^ n * (B ^ (n + 1) - 1)) by (apply Nat.mul_le_mono_l; auto).
      rewrite <- Nat2Z.inj_pow, <- Nat2Z.inj_mul, (fits (Z.of_nat (B ^ n * hash_n_gram B fa n q))) by lia.
      rewrite <- Nat2Z.inj_add. apply fits. lia. }
    intros r e4 E4 R. keep E4. apply wp_ret, K; auto. simpl. ready.
  - step. apply do_map with (ss := [nats (cumsum (is_sep fa)); nats (hash_n_gram B fa n)])
      (f := nats (seq_map (cumsum (is_sep fa)) (hash_n_gram B fa n) (fun a b => b + B ^ (n + 1) * a))); [ready | |].
    { intros q Hq. cbn [Graph.ev operate nth map]. unfold seq_map. specialize (Bc q Hq). specialize (Bg q).
      assert (B ^ (n + 1) * cumsum (is_sep fa) q <= B ^ (n + 1) * L) by (apply Nat.mul_le_mono_l; auto).
      rewrite <- Nat2Z.inj_pow, <- Nat2Z.inj_mul, (fits (Z.of_nat (B ^ (n + 1) * cumsum (is_sep fa) q))) by lia.
      rewrite <- Nat2Z.inj_add. apply fits. lia. }
    intros r e4 E4 R. keep E4. apply wp_ret, K; auto. simpl. ready.
Qed.

Lemma do_keys env (Q : list nat -> list value -> Prop) a fa : is env a fa -> (forall q, fa q < B) ->
  (forall js env', extends env env' -> Forall2 (holds env') js (map (fun f => nats f) (key_parts k fa n)) -> Q js env') ->
  wp (Build.hash_n_gram_iter k a n) env Q.
Proof.
  intros A Bf K. unfold Build.hash_n_gram_iter. pose proof (extends_refl env) as X.
  step. eapply (do_equal_to _ _ _ _ 0); [exact A |]. intros s e1 E1 S. keep E1.
  step. eapply do_cumsum; [exact S |]. intros c e2 E2 C. keep E2.
  change (tok_map fa (fun v => if v =? 0 then 1 else 0)) with (is_sep fa) in C.
  assert (D : k = Tuple \/ k <> Tuple) by (destruct k; auto; right; discriminate). destruct D as [-> | Hk].
  - step. eapply do_n_gram; [| exact A | exact Bf |]; [unfold largest_key in key_fits; lia |]. intros g e3 E3 G. keep E3.
    apply wp_ret, K; auto. simpl. constructor; assumption.
  - replace (key_parts k fa n) with (hash_n_gram_iter B k fa n) in K by (destruct k; [auto | auto | contradiction]).
    replace (match k with Tuple => _ | _ => _ end)
      with (Build.bind (Build.hash_n_gram a n) (fun gram => Build.packed k n c gram)) by (destruct k; [auto | auto | contradiction]).
    step. eapply do_hash; [exact (gram_fits Hk) | exact A | exact Bf |]. intros g e3 E3 G. keep E3.
    eapply do_packed; [exact Hk | exact C | exact G | exact Bf |]. intros js e4 E4 J. apply K; auto. eapply extends_trans; eassumption.
Qed.

(* ---- the program ------------------------------------------------------------------------------------------------- *)
Hypothesis st_range : forall z, st z = true -> 4 <= z < B.
Hypothesis B4 : 4 <= B.
Hypothesis ns_below : forall q a, ns q a < B.
Hypothesis ny_below : forall q a, ny q a < B.
Hypothesis text_below : forall z, In z text -> z < B.

Let x_below q : x q < B. Proof. apply text_is_below; auto; lia. Qed.
Lemma key_tape_below q : prefix_fill (next_tape st ns ny mv x 3) 2 3 q < B.
Proof. rewrite fill_spec. destruct (q <? 2); [lia | apply (next_tape_below B st); auto]. Qed.

(* Whatever the parts of its keys, the look-up finds what the program's does. *)
Lemma found_by_parts p : let key_tape := prefix_fill (next_tape st ns ny mv x 3) 2 3 in
  kqv_max (key_parts k key_tape n) (key_parts k x n) (next_tape st ns ny mv x 2) 0 p = next_tokens B st ns ny mv k n x p.
Proof. cbv zeta. unfold key_parts. destruct k; auto. apply (next_tokens_of_tokens B st ns ny mv); auto. Qed.

Lemma do_program env Q a : is env a x ->
  (forall j env', extends env env' -> is env' j (next_tokens B st ns ny mv k n x) -> Q j env') -> wp (Build.next_tokens k n a) env Q.
Proof.
  intros A K. unfold Build.next_tokens. pose proof (extends_refl env) as X.
  step. eapply (do_next_tape _ _ _ _ 2); [lia | exact A |]. intros t e1 E1 T. keep E1.
  step. eapply (do_next_tape _ _ _ _ 3); [lia | exact A |]. intros l e2 E2 Lt. keep E2.
  step. eapply (do_fill _ _ _ _ 2); [lia | exact Lt |]. intros kt e3 E3 Kt. keep E3.
  set (key_tape := prefix_fill (next_tape st ns ny mv x 3) 2 3) in *.
  step. eapply do_keys; [exact Kt | exact key_tape_below |]. intros ks e4 E4 Ks. keep E4.
  step. eapply do_keys; [exact A | exact x_below |]. intros qs e5 E5 Qs. keep E5.
  assert (P : exists fk fks fq fqs, key_parts k key_tape n = fk :: fks /\ key_parts k x n = fq :: fqs /\ length fks = length fqs).
  { pose proof (token_key_length key_tape x n) as TL. unfold key_parts, hash_n_gram_iter, token_key in *.
    destruct k; do 4 eexists; repeat split; try reflexivity. injection TL. auto. }
  destruct P as (fk & fks & fq & fqs & Pk & Pq & Pl).
  pose proof found_by_parts as F. cbv zeta in F. fold key_tape in F. rewrite Pk, Pq in *.
  inversion Ks as [| k0 ? ks' ? Hk Hks]; subst. inversion Qs as [| q0 ? qs' ? Hq Hqs]; subst. cbn [hd tl].
  pose proof (same_lengths _ _ _ Hks) as Lk. pose proof (same_lengths _ _ _ Hqs) as Lq. rewrite map_length in Lk, Lq.
  assert (Ln : length ks' = length qs') by (rewrite Lk, Lq; exact Pl).
  step. eapply do_select_all with (fmore := combine fks fqs); [exact Hk | exact Hq | | |].
  { rewrite (map_fst_combine ks' qs') by exact Ln. rewrite <- (map_fst_combine fks fqs), map_map in Hks by exact Pl. exact Hks. }
  { rewrite (map_snd_combine ks' qs') by exact Ln. rewrite <- (map_snd_combine fks fqs), map_map in Hqs by exact Pl. exact Hqs. }
  intros s e6 E6 S. keep E6. rewrite (map_fst_combine fks fqs), (map_snd_combine fks fqs) in S by exact Pl.
  eapply do_max; [exact S | exact T |]. intros j e7 E7 J. apply K; [eapply extends_trans; eassumption |].
  eapply holds_ext; [| exact J]. intros q Hq'. cbv beta. rewrite F. auto.
Qed.

(* The output of the traced graph, at every place of every text of tokens, is the program's prediction there. *)
Theorem graph_is_program : let out := output wrap B st ns ny mv (program k n) words in
  length out = L /\ forall p, p < L -> nth p out 0%Z = Z.of_nat (next_tokens B st ns ny mv k n x p).
Proof.
  cbv zeta. unfold output, program, Build.graph_of.
  assert (I : is (run [Input 0] []) 0 x).
  { unfold is, holds, numbers. simpl. repeat split; [lia | apply map_length |].
    intros q Hq. unfold as_words, sequence_of. rewrite nth_mapped with (d' := 0) by auto. auto. }
  set (Q := fun j env => holds env j (fun q => Z.of_nat (next_tokens B st ns ny mv k n x q))).
  assert (W : wp (Build.next_tokens k n 0) (run [Input 0] []) Q) by (apply do_program; auto).
  assert (S : Datatypes.S (snd (Build.next_tokens k n 0 1)) = 1 + length (fst (Build.next_tokens k n 0 1))).
  { assert (LN : last_node (Build.next_tokens k n 0)); [unfold Build.next_tokens; repeat (apply last_bind; intros); apply last_emit | apply LN]. }
  unfold wp in W. change (length (run [Input 0] [])) with 1 in W.
  destruct (Build.next_tokens k n 0 1) as [g o]. simpl in S. injection S as ->.
  cbn [fst snd] in W. change (Build.inputs 1) with [Input 0]. cbv beta iota zeta. cbn [fst].
  replace (length ([Input 0] ++ g) - 1) with (length g) by (rewrite app_length; simpl; lia). rewrite run_app.
  destruct W as (_ & Wl & Wp). split; assumption.
Qed.
End Words.

(* ---- whole numbers, and words of 64 bits ------------------------------------------------------------------------- *)
(* Two's complement. The test first only spares the division where it would change nothing (`wrap64_is`). *)
Definition wrap64 (z : Z) : Z :=
  if ((-9223372036854775808 <=? z) && (z <? 9223372036854775808))%Z then z
  else ((z + 9223372036854775808) mod 18446744073709551616 - 9223372036854775808)%Z.
Lemma wrap64_is z : wrap64 z = ((z + 2 ^ 63) mod 2 ^ 64 - 2 ^ 63)%Z.
Proof.
  change (2 ^ 63)%Z with 9223372036854775808%Z. change (2 ^ 64)%Z with 18446744073709551616%Z. unfold wrap64.
  destruct (Z.leb_spec (-9223372036854775808) z), (Z.ltb_spec z 9223372036854775808); simpl andb; cbv iota; auto.
  rewrite Z.mod_small; lia.
Qed.
Lemma wrap64_small z : (0 <= z <= 2 ^ 63 - 1)%Z -> wrap64 z = z.
Proof. intros H. rewrite wrap64_is, Z.mod_small; lia. Qed.

(* Whether every key of a text of that length is at most 2^63 - 1, as rasp's `key_fits` asks before it runs a program. *)
Definition key_fits (B : nat) (k : packing) (n length : nat) : Prop := (Z.of_nat (largest_key B k n length) <= 2 ^ 63 - 1)%Z.

Lemma largest_key_room B k n length : 4 <= B -> 1 <= n -> length + 4 <= largest_key B k n length.
Proof.
  intros HB Hn. assert (4 <= B ^ n) by (apply Nat.le_trans with (B ^ 1); [simpl; lia | apply Nat.pow_le_mono_r; lia]).
  assert (16 <= B ^ (n + 1)) by (replace (n + 1) with (S n) by lia; simpl; nia).
  unfold largest_key. destruct k; nia.
Qed.
Lemma largest_key_gram B k n length : 4 <= B -> 1 <= n -> k <> Tuple -> B ^ (n + 1) <= largest_key B k n length + 1.
Proof.
  intros HB Hn Hk. assert (4 <= B ^ n) by (apply Nat.le_trans with (B ^ 1); [simpl; lia | apply Nat.pow_le_mono_r; lia]).
  unfold largest_key. destruct k; [nia | nia | contradiction].
Qed.
Lemma largest_key_grows B k n a b : a <= b -> largest_key B k n a <= largest_key B k n b.
Proof. intros. unfold largest_key. destruct k; nia. Qed.

Section Instances.
Variable B : nat.
Variable st : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Hypothesis st_range : forall z, st z = true -> 4 <= z < B.
Hypothesis B4 : 4 <= B.
Hypothesis ns_below : forall q a, ns q a < B.
Hypothesis ny_below : forall q a, ny q a < B.

(* A graph on a text: a prediction for every place, each that of the program. *)
Definition predicts (wrap : Z -> Z) (k : packing) (n : nat) (text : list nat) : Prop :=
  let out := output wrap B st ns ny mv (program k n) (as_words text) in
  length out = length text /\
  forall p, p < length text -> nth p out 0%Z = Z.of_nat (next_tokens B st ns ny mv k n (sequence_of text) p).

Theorem whole_numbers k n text : 1 <= n -> (forall z, In z text -> z < B) -> predicts (fun z => z) k n text.
Proof.
  intros Hn Ht. apply graph_is_program with (M := largest_key B k n (length text)); auto using largest_key_room,
    largest_key_gram; lia.
Qed.

Theorem words_64 k n text : 1 <= n -> key_fits B k n (length text) -> (forall z, In z text -> z < B) -> predicts wrap64 k n text.
Proof.
  intros Hn Hk Ht. apply graph_is_program with (M := largest_key B k n (length text)); auto using largest_key_room,
    largest_key_gram; try lia.
  intros z Hz. apply wrap64_small. unfold key_fits in Hk. lia.
Qed.
End Instances.
