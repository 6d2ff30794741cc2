(* Rows of tags without a repeated gram: how long they can be, and that they are that long.

   A row over k letters in which no n+1 neighbours repeat has at most k^(n+1) + n places, because there are only k^(n+1)
   grams. Here it is shown that rows of every length up to this bound exist, for every k >= 1 and every n: so k tags
   are enough for k^(n+1) + n cells (k^2 + 1 for bigrams), which is the count by which `tag_row` chooses k.

   The row is built greedily. It starts with n zeros; then always the largest letter is appended that makes a new gram.
   Why this never stops early (the argument of Martin, 1934): count, for a word v of n letters, the grams that begin with
   v and those that end with v. These numbers differ only for the first and the last word of the row. If no letter can
   be appended, all k grams that begin with the last word are there, so more than k would have to end with it, unless it
   is the first word, 0..0. So the row is closed, and all grams that begin or end with 0..0 are there. Zero is always
   chosen last: where v0 is there, all of v0, .., v(k-1) are, so all k grams that end with v. Hence from 0..00 back:
   every c0..0, then every cd0..0, and so on: every gram is there, and the row has reached the bound.

   Words are lists with the newest letter first. *)
From Coq Require Import Arith Lia List Bool FinFun.
Import ListNotations.

Section Greedy.
Variables k n : nat.

Notation word := (list nat).
Definition same (v u : word) : bool := if list_eq_dec Nat.eq_dec v u then true else false.
Lemma same_spec v u : same v u = true <-> v = u.
Proof. unfold same. destruct list_eq_dec; intuition congruence. Qed.
Lemma same_refl v : same v v = true. Proof. apply same_spec; auto. Qed.
Definition known (g : word) (gs : list word) : bool := existsb (same g) gs.
Lemma known_spec g gs : known g gs = true <-> In g gs.
Proof.
  unfold known. rewrite existsb_exists. split.
  - intros (u & I & E). apply same_spec in E. congruence.
  - intros I. exists g. split; auto using same_refl.
Qed.

(* all words of a length *)
Fixpoint words (m : nat) : list word :=
  match m with 0 => [[]] | S m => flat_map (fun v => map (fun c => c :: v) (seq 0 k)) (words m) end.
Definition is_word (m : nat) (v : word) := length v = m /\ Forall (fun c => c < k) v.
Lemma words_spec m : forall v, In v (words m) <-> is_word m v.
Proof.
  induction m; intros v; simpl.
  - split; [intros [<- | []]; split; auto | intros [L _]; left; destruct v; [auto | discriminate]].
  - rewrite in_flat_map. split.
    + intros (u & Hu & Hv). apply in_map_iff in Hv as (c & <- & Hc). apply IHm in Hu as [L F]. apply in_seq in Hc.
      split; [simpl; lia | constructor; auto; lia].
    + intros [L F]. destruct v as [| c v]; [discriminate |]. inversion F; subst. exists v. split.
      * apply IHm. split; auto.
      * apply in_map_iff. exists c. split; auto. apply in_seq; lia.
Qed.
Lemma words_length m : length (words m) = k ^ m.
Proof.
  induction m; auto. simpl. rewrite <- IHm. generalize (words m). clear IHm.
  induction l; simpl; [lia |]. rewrite app_length, map_length, seq_length, IHl. lia.
Qed.
Lemma NoDup_both (a b : list word) : NoDup a -> NoDup b -> (forall v, In v a -> ~ In v b) -> NoDup (a ++ b).
Proof.
  induction a; simpl; intros A B D; auto. inversion A; subst. constructor; auto.
  intros I. apply in_app_or in I as [I | I]; [auto | apply (D a); auto].
Qed.
Lemma words_once m : NoDup (words m).
Proof.
  induction m; simpl; [repeat constructor; auto |]. revert IHm. generalize (words m).
  induction l as [| v l IH]; simpl; intros N; [constructor |]. inversion N; subst. apply NoDup_both; auto.
  - apply Injective_map_NoDup; [intros a b E; congruence | apply seq_NoDup].
  - intros u I J. apply in_map_iff in I as (c & <- & _). apply in_flat_map in J as (u & Hu & J).
    apply in_map_iff in J as (d & E & _). congruence.
Qed.

(* the grams of a row, and the row's latest word *)
Fixpoint grams (r : word) : list word :=
  match r with [] => [] | c :: r' => if n <=? length r' then firstn (S n) r :: grams r' else [] end.
Definition newest (r : word) : word := firstn n r.
Lemma grams_cons c r : n <= length r -> grams (c :: r) = (c :: newest r) :: grams r.
Proof. intros L. simpl. destruct (Nat.leb_spec n (length r)); [auto | lia]. Qed.
Lemma grams_short r : length r <= n -> grams r = [].
Proof. destruct r; simpl; auto. intros. destruct (Nat.leb_spec n (length r)); auto; lia. Qed.

Lemma grams_length r : length (grams r) = length r - n.
Proof.
  induction r as [| c r IH]; auto. change (length (c :: r)) with (S (length r)). cbn [grams].
  destruct (Nat.leb_spec n (length r)); cbn [length]; [rewrite IH |]; lia.
Qed.

Hypothesis k1 : 1 <= k.

(* the greedy choice: the largest letter below j that makes a new gram *)
Fixpoint choose (j : nat) (v : word) (gs : list word) : option nat :=
  match j with 0 => None | S j => if known (j :: v) gs then choose j v gs else Some j end.
Fixpoint greedy (m : nat) : word :=
  match m with
  | 0 => repeat 0 n
  | S m => let r := greedy m in match choose k (newest r) (grams r) with Some c => c :: r | None => r end
  end.

Lemma choose_none j v gs : choose j v gs = None -> forall c, c < j -> In (c :: v) gs.
Proof.
  induction j; intros E c Hc; [lia |]. simpl in E. destruct (known (j :: v) gs) eqn:K; [| discriminate].
  destruct (Nat.eq_dec c j) as [-> | ?]; [apply known_spec; auto | apply IHj; auto; lia].
Qed.
Lemma choose_some j v gs c : choose j v gs = Some c ->
  c < j /\ ~ In (c :: v) gs /\ forall d, c < d < j -> In (d :: v) gs.
Proof.
  induction j; intros E; [discriminate |]. simpl in E. destruct (known (j :: v) gs) eqn:K.
  - destruct (IHj E) as (L & N & G). split; [lia |]. split; auto. intros d Hd.
    destruct (Nat.eq_dec d j) as [-> | ?]; [apply known_spec; auto | apply G; lia].
  - injection E as <-. split; [lia |]. split; [| intros; lia]. rewrite <- known_spec. congruence.
Qed.

(* grams that begin with v, that end with v *)
Definition count_if (f : word -> bool) (gs : list word) := length (filter f gs).
Definition outs v gs := count_if (fun g => same (tl g) v) gs.
Definition ins v gs := count_if (fun g => same (firstn n g) v) gs.
Definition one (b : bool) := if b then 1 else 0.

Definition zeros := repeat 0 n.
Record good (r : word) : Prop := {
  long : n <= length r;
  letters : Forall (fun c => c < k) r;
  once : NoDup (grams r);
  balance : forall v, outs v (grams r) + one (same (newest r) v) = ins v (grams r) + one (same zeros v);
  prefer : forall v c d, In (c :: v) (grams r) -> c < d < k -> In (d :: v) (grams r) }.

Lemma good_start : good zeros.
Proof.
  unfold zeros. assert (grams (repeat 0 n) = []) as G by (apply grams_short; rewrite repeat_length; auto).
  constructor; rewrite ?G.
  - rewrite repeat_length. auto.
  - apply Forall_forall. intros c Hc. apply repeat_spec in Hc. lia.
  - constructor.
  - intros v. unfold newest, zeros. rewrite firstn_all2 by (rewrite repeat_length; auto). auto.
  - intros v c d [].
Qed.

Lemma good_step r c : good r -> choose k (newest r) (grams r) = Some c -> good (c :: r).
Proof.
  intros [L F O Bl P] E. apply choose_some in E as (Hc & New & Above).
  assert (grams (c :: r) = (c :: newest r) :: grams r) as G by (apply grams_cons; auto).
  constructor; rewrite ?G.
  - simpl; lia.
  - constructor; auto.
  - constructor; auto.
  - intros v. specialize (Bl v). unfold outs, ins, count_if in *. simpl filter.
    replace (tl (c :: newest r)) with (newest r) by auto.
    replace (firstn n (c :: newest r)) with (newest (c :: r)).
    2:{ unfold newest. clear. destruct n; auto. rewrite !firstn_cons, firstn_firstn, Nat.min_l by lia. auto. }
    destruct (same (newest r) v), (same (newest (c :: r)) v); simpl in *; lia.
  - intros v a d [I | I] Hd; [| right; eauto]. injection I as -> <-. right. apply Above. lia.
Qed.

Lemma grams_are_words r g : good r -> In g (grams r) -> is_word (S n) g.
Proof.
  intros [L F _ _ _]. induction r as [| c r IH]; simpl; [tauto |].
  destruct (Nat.leb_spec n (length r)); [| simpl; tauto]. inversion F; subst. intros [<- | I]; [| apply IH; auto].
  split; simpl.
  - f_equal. rewrite firstn_length. lia.
  - constructor; auto. clear - H3. revert n. induction r; intros m; destruct m; simpl; auto. inversion H3; subst.
    constructor; auto.
Qed.

Lemma ins_most v r : length v = n -> good r -> ins v (grams r) <= k.
Proof.
  intros Lv G. unfold ins, count_if. replace k with (length (map (fun c => v ++ [c]) (seq 0 k))) by
    (rewrite map_length, seq_length; auto).
  apply NoDup_incl_length; [apply NoDup_filter, (once r G) |].
  intros g I. apply filter_In in I as [I E]. apply same_spec in E. apply (grams_are_words r) in I as [L F]; auto.
  assert (g = v ++ skipn n g) as Eg by (rewrite <- E; symmetry; apply firstn_skipn).
  assert (length (skipn n g) = 1) as L1 by (rewrite skipn_length; lia).
  destruct (skipn n g) as [| c [| ? ?]]; try discriminate. subst g. apply Forall_app in F as [_ F]. inversion F; subst.
  apply in_map_iff. exists c. split; auto. apply in_seq; lia.
Qed.

Lemma ins_full v r c : length v = n -> good r -> k <= ins v (grams r) -> c < k -> In (v ++ [c]) (grams r).
Proof.
  intros Lv G Full Hc.
  set (l := filter (fun g => same (firstn n g) v) (grams r)).
  assert (I : incl (map (fun c => v ++ [c]) (seq 0 k)) l).
  { apply NoDup_length_incl; [apply NoDup_filter, (once r G) | rewrite map_length, seq_length; exact Full |].
    intros g I. unfold l in I. apply filter_In in I as [I E]. apply same_spec in E.
    apply (grams_are_words r) in I as [L F]; auto.
    assert (g = v ++ skipn n g) as Eg by (rewrite <- E; symmetry; apply firstn_skipn).
    assert (length (skipn n g) = 1) as L1 by (rewrite skipn_length; lia).
    destruct (skipn n g) as [| a [| ? ?]]; try discriminate. subst g. apply Forall_app in F as [_ F]. inversion F; subst.
    apply in_map_iff. exists a. split; auto. apply in_seq; lia. }
  assert (In (v ++ [c]) l) as J by (apply I, in_map_iff; exists c; split; auto; apply in_seq; lia).
  unfold l in J. apply filter_In in J as [J _]. exact J.
Qed.

Lemma outs_full v r : (forall c, c < k -> In (c :: v) (grams r)) -> k <= outs v (grams r).
Proof.
  intros A. unfold outs, count_if. replace k with (length (map (fun c => c :: v) (seq 0 k))) by
    (rewrite map_length, seq_length; auto).
  apply NoDup_incl_length.
  - apply Injective_map_NoDup; [intros a b E; congruence | apply seq_NoDup].
  - intros g I. apply in_map_iff in I as (c & <- & Hc). apply in_seq in Hc. apply filter_In.
    split; [apply A; lia | simpl; apply same_refl].
Qed.

(* where no letter is new, every gram is there *)
Lemma stuck_full r : good r -> choose k (newest r) (grams r) = None -> forall g, is_word (S n) g -> In g (grams r).
Proof.
  intros G E. pose proof (choose_none _ _ _ E) as A.
  assert (Le : length (newest r) = n) by (unfold newest; rewrite firstn_length; pose proof (long r G); lia).
  assert (newest r = zeros) as Ez.
  { pose proof (balance r G (newest r)) as Bl. pose proof (outs_full _ _ A). pose proof (ins_most _ _ Le G).
    rewrite same_refl in Bl. destruct (same zeros (newest r)) eqn:S; simpl in Bl; [| lia].
    symmetry. apply same_spec; auto. }
  (* all that begin with v are there, so all that end with it *)
  assert (Back : forall v c, length v = n -> In (0 :: v) (grams r) -> c < k -> In (v ++ [c]) (grams r)).
  { intros v c Lv I Hc. apply ins_full; auto. pose proof (balance r G v) as Bl. rewrite Ez in Bl.
    assert (k <= outs v (grams r)); [| lia]. apply outs_full. intros d Hd.
    destruct d; auto. apply (prefer r G) with (c := 0); auto. lia. }
  assert (All : forall i u, i <= S n -> is_word i u -> In (repeat 0 (S n - i) ++ u) (grams r)).
  { induction i; intros u Hi [Lu Fu].
    - destruct u; [| discriminate]. rewrite app_nil_r, Nat.sub_0_r. simpl.
      change (repeat 0 n) with zeros. rewrite <- Ez. apply A. lia.
    - assert (exists u' c, u = u' ++ [c]) as (u' & c & ->)
        by (destruct (exists_last (l := u)) as (u' & c & ->); [intros ->; discriminate | eauto]).
      rewrite app_length in Lu. simpl in Lu. apply Forall_app in Fu as [Fu Fc]. inversion Fc; subst.
      rewrite app_assoc. apply Back; auto.
      + rewrite app_length, repeat_length. lia.
      + replace (S n - S i) with (n - i) by lia.
        change (0 :: repeat 0 (n - i) ++ u') with (repeat 0 (S (n - i)) ++ u'). replace (S (n - i)) with (S n - i) by lia.
        apply IHi; [lia | split; auto; lia]. }
  intros g W. specialize (All (S n) g (le_n _) W). rewrite Nat.sub_diag in All. exact All.
Qed.

Lemma greedy_good m : m <= k ^ (S n) -> good (greedy m) /\ length (greedy m) = m + n.
Proof.
  induction m; intros Hm; [split; [apply good_start | simpl; apply repeat_length] |].
  destruct IHm as [G L]; [lia |]. simpl.
  destruct (choose k (newest (greedy m)) (grams (greedy m))) eqn:E.
  - split; [apply good_step; auto | simpl; lia].
  - exfalso. pose proof (stuck_full _ G E) as A.
    assert (I : incl (words (S n)) (grams (greedy m))) by (intros g W; apply A, words_spec; auto).
    apply NoDup_incl_length in I; [| apply words_once]. rewrite words_length, grams_length, L in I. lia.
Qed.
End Greedy.

(* ---- rows as functions of the place ------------------------------------------------------------------------------ *)
Definition repeats_in (row : nat -> nat) (places n : nat) : Prop :=   (* some n+1 neighbours stand twice *)
  exists i j, i < j /\ j + n < places /\ forall m, m <= n -> row (i + m) = row (j + m).

Lemma nth_gram n r : forall i, i + n < length r -> nth i (grams n r) [] = firstn (S n) (skipn i r).
Proof.
  induction r as [| c r IH]; intros i Hi; simpl in Hi; [lia |]. rewrite grams_cons by lia. destruct i; [auto |].
  simpl nth. rewrite IH by lia. auto.
Qed.
Lemma nth_slice (r : list nat) i m n : m <= n -> nth m (firstn (S n) (skipn i r)) 0 = nth (i + m) r 0.
Proof.
  intros Hm. revert i. induction r as [| c r IH]; intros i.
  - rewrite skipn_nil, firstn_nil. destruct m, (i + _); auto.
  - destruct i; [| apply IH]. rewrite Nat.add_0_l. simpl skipn. clear IH. generalize (c :: r). clear c r.
    revert n Hm. induction m; intros n Hm l; destruct l; simpl; auto. destruct n; [lia |]. apply IHm. lia.
Qed.
Lemma once_row n r : NoDup (grams n r) <-> ~ repeats_in (fun i => nth i r 0) (length r) n.
Proof.
  split.
  - intros N (i & j & Hij & Hj & E). assert (i = j); [| lia].
    apply (proj1 (NoDup_nth (grams n r) [])); auto; try (rewrite grams_length; lia).
    rewrite !nth_gram by lia. apply nth_ext with (d := 0) (d' := 0).
    + rewrite !firstn_length, !skipn_length. lia.
    + intros m Hm. rewrite firstn_length, skipn_length in Hm. rewrite !nth_slice by lia. apply E. lia.
  - intros R. apply (NoDup_nth (grams n r) []). intros i j Hi Hj E. rewrite grams_length in Hi, Hj.
    rewrite !nth_gram in E by lia.
    assert (P : forall m, m <= n -> nth (i + m) r 0 = nth (j + m) r 0)
      by (intros m Hm; rewrite <- !(nth_slice r _ m n) by auto; congruence).
    destruct (Nat.lt_trichotomy i j) as [L | [L | L]]; auto; exfalso; apply R.
    + exists i, j. repeat split; auto; lia.
    + exists j, i. repeat split; auto; try lia. intros m Hm. symmetry. auto.
Qed.

(* k tags are enough for every number of cells up to k^(n+1) + n *)
Theorem tags_exist k n cells : 1 <= k -> cells <= k ^ (n + 1) + n ->
  exists row, (forall i, row i < k) /\ ~ repeats_in row cells n.
Proof.
  intros Hk Hc. replace (n + 1) with (S n) in Hc by lia.
  destruct (greedy_good k n Hk (k ^ (S n)) (le_n _)) as [G L].
  exists (fun i => nth i (greedy k n (k ^ (S n))) 0). split.
  - intros i. destruct (nth_in_or_default i (greedy k n (k ^ S n)) 0) as [I | ->]; [| lia].
    pose proof (letters _ _ _ G) as F. rewrite Forall_forall in F. apply F; auto.
  - pose proof (proj1 (once_row _ _) (once _ _ _ G)) as N. intros (i & j & Hij & Hj & E). apply N.
    exists i, j. repeat split; auto. lia.
Qed.

(* and for no more *)
Theorem tags_bound k n cells row : (forall i, row i < k) -> ~ repeats_in row cells n -> cells <= k ^ (n + 1) + n.
Proof.
  intros Hr N. replace (n + 1) with (S n) by lia. set (r := map row (seq 0 cells)).
  assert (Lr : length r = cells) by (unfold r; rewrite map_length, seq_length; auto).
  assert (Nth : forall i, i < cells -> nth i r 0 = row i).
  { intros i Hi. unfold r. rewrite nth_indep with (d' := row 0) by (rewrite map_length, seq_length; auto).
    rewrite map_nth, seq_nth by auto. auto. }
  assert (O : NoDup (grams n r)).
  { apply once_row. intros (i & j & Hij & Hj & E). apply N. exists i, j. rewrite Lr in Hj. repeat split; auto.
    intros m Hm. specialize (E m Hm). cbv beta in E. rewrite !Nth in E by lia. exact E. }
  assert (I : incl (grams n r) (words k (S n))).
  { intros g Ig. apply words_spec. apply In_nth with (d := []) in Ig as (i & Hi & <-). rewrite grams_length in Hi.
    rewrite nth_gram by lia. split; [rewrite firstn_length, skipn_length; lia |].
    apply Forall_forall. intros c Hc. assert (In c r) as J.
    { rewrite <- (firstn_skipn i r). apply in_or_app. right. rewrite <- (firstn_skipn (S n) (skipn i r)).
      apply in_or_app. left. exact Hc. }
    unfold r in J. apply in_map_iff in J as (p & <- & _). apply Hr. }
  apply NoDup_incl_length in I; auto. rewrite words_length, grams_length, Lr in I. lia.
Qed.

(* for bigrams: k tags, k*k + 1 cells *)
Corollary tags_square k : 1 <= k -> exists row, (forall i, row i < k) /\ ~ repeats_in row (k * k + 1) 1.
Proof. intros Hk. apply tags_exist; simpl; lia. Qed.

(* ---- the row that the program takes ------------------------------------------------------------------------------ *)
(* `de_bruijn` of rasp.machines.simulable, the Lyndon words in order. For alphabets and grams in use its row is, by computation, the
   greedy one read from another start and with the letters counted from the other end; and it repeats nothing. *)
Fixpoint drop_largest (k : nat) (word : list nat) : list nat :=   (* of a word with its last letter first *)
  match word with c :: rest => if c =? k - 1 then drop_largest k rest else word | [] => [] end.
Fixpoint lyndon (k size fuel : nat) (word : list nat) : list nat :=
  match fuel, drop_largest k (rev word) with
  | S fuel, c :: rest =>
      let next := rev (S c :: rest) in
      let full := map (fun i => nth (i mod length next) next 0) (seq 0 size) in
      (if size mod length next =? 0 then next else []) ++ lyndon k size fuel full
  | _, _ => []
  end.
Definition de_bruijn (k size : nat) : list nat := 0 :: lyndon k size (k ^ size) (repeat 0 size).
Definition tag_row (k n : nat) : list nat := let cycle := de_bruijn k (n + 1) in cycle ++ firstn n cycle.
Definition repeats_none (n : nat) (r : list nat) : bool :=
  let gs := grams n r in length (nodup (list_eq_dec Nat.eq_dec) gs) =? length gs.
Lemma repeats_none_spec n r : repeats_none n r = true -> ~ repeats_in (fun i => nth i r 0) (length r) n.
Proof.
  unfold repeats_none. intros E. apply once_row. apply Nat.eqb_eq in E.
  apply NoDup_incl_NoDup with (l := nodup (list_eq_dec Nat.eq_dec) (grams n r)); [apply NoDup_nodup | lia |].
  intros g. apply nodup_In.
Qed.
Definition sizes := [(2, 1); (3, 1); (4, 1); (5, 1); (6, 1); (7, 1); (2, 2); (3, 2); (4, 2); (2, 3); (3, 3); (2, 4); (2, 5)].
Example tag_rows : forallb (fun '(k, n) => repeats_none n (tag_row k n) &&
  (length (tag_row k n) =? k ^ (n + 1) + n) && forallb (fun c => c <? k) (tag_row k n)) sizes = true.
Proof. vm_compute. reflexivity. Qed.
Example tag_rows_are_greedy : forallb (fun '(k, n) => same (de_bruijn k (n + 1))
  (map (fun c => k - 1 - c) (skipn n (rev (greedy k n (k ^ (n + 1))))))) sizes = true.
Proof. vm_compute. reflexivity. Qed.

(* what must fail: one cell more than the bound; a row in which a bigram stands twice *)
Example too_long : repeats_none 1 (tag_row 2 1 ++ [1]) = false.
Proof. vm_compute. reflexivity. Qed.
Example two_twice : repeats_in (fun i => nth i [0; 1; 0; 1] 0) 4 1.
Proof. exists 0, 2. repeat split; auto. intros [| [| m]]; simpl; auto; lia. Qed.
Fail Example too_long_passes : repeats_none 1 (tag_row 2 1 ++ [0]) = true := eq_refl.
